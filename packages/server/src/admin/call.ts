import type { AdminRouteName, adminRoutes, Role, Static, TSchema } from '@assay/contract/admin'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Origin } from '../domain/console/sign-in.ts'
import { Problem } from '../domain/problem.ts'

type Of<N extends AdminRouteName, K extends 'query' | 'body' | 'answer'> = (typeof adminRoutes)[N] extends {
  [key in K]: infer S extends TSchema
}
  ? Static<S>
  : undefined

/** Who asks: a member with a session, or a script with the operator token. */
export type Who = {
  /** As the audit log shows it. */
  actor: string
  role: Role
  accountId: string | null
  memberId: string | null
  sessionId: string | null
  csrfToken: string | null
}

export type Call<N extends AdminRouteName> = {
  /** Only routes for anyone are called without. */
  who: Who
  origin: Origin
  params: Record<string, string>
  query: Of<N, 'query'>
  body: Of<N, 'body'>
  request: FastifyRequest
  reply: FastifyReply
}

type Answer<N extends AdminRouteName> = Of<N, 'answer'> extends undefined ? unknown : Of<N, 'answer'>

/** What a route does: it gets what was checked already, and returns the answer. */
export type Handlers<N extends AdminRouteName = AdminRouteName> = {
  [Name in N]: (call: Call<Name>) => Promise<Answer<Name>>
}

/** Of whoever passed the guard of a route for those who hold an account. */
export function getAccountId({ who }: { who: Who }): string {
  if (who.accountId === null) throw new Error('A handler for account holders ran without the guard before it')
  return who.accountId
}

/** The same answer for what is not there and what is somebody else's. */
export function requireThere<T>(found: T | undefined | false, what: string): T {
  if (found === undefined || found === false)
    throw new Problem({ kind: 'not-found', detail: `There is no such ${what}.` })
  return found
}
