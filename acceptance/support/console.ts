import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { adminPath, type CreatedAccount as CreatedAccountSchema, csrfHeader } from '@assay/contract/admin'
import type { Static } from 'typebox'
import { type Answer, sendTo } from './http.ts'

/** Whoever asks the admin API: the headers that show who it is. */
export type Visitor = Record<string, string>
export type CreatedAccount = Static<typeof CreatedAccountSchema>

export const nobody: Visitor = {}
export const goodPassword = 'correct horse battery staple'
export const newEmail = (name = 'ada') => `${name}-${randomUUID()}@example.com`

type Options = { body?: unknown; headers?: Record<string, string | undefined> }

/** The admin API of a service, as the console and scripts use it. */
export function makeAdmin(url: string, adminToken: string) {
  const token: Visitor = { authorization: `Bearer ${adminToken}` }

  /** A body that is a string or bytes goes out as it is. */
  function send(who: Visitor, method: string, path: string, { body, headers = {} }: Options = {}): Promise<Answer> {
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    return sendTo(url, {
      ...{ method, path: adminPath + path },
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...who, ...headers },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    })
  }

  /** What a request that must succeed answers. */
  async function ask<T>(who: Visitor, method: string, path: string, body?: unknown): Promise<T> {
    const answer = await send(who, method, path, { body })
    assert(answer.status === 200 || answer.status === 204, `${method} ${path}: ${answer.status} ${answer.text}`)
    return (answer.text === '' ? undefined : JSON.parse(answer.text)) as T
  }

  /** The visitor of the session that an answer opened. */
  async function toVisitor(answer: Answer): Promise<Visitor> {
    assert.equal(answer.status, 200, answer.text)
    const cookie = toCookie(answer)
    const { csrf_token: csrfToken } = await ask<{ csrf_token: string }>({ cookie }, 'GET', '/session')
    return { cookie, [csrfHeader.toLowerCase()]: csrfToken }
  }

  /** `link` as it was printed or answered: its token is behind the #. */
  const accept = (link: string, given: { email?: string; name?: string; password?: string } = {}) =>
    send(nobody, 'POST', '/link/accept', {
      body: {
        ...{ token: toToken(link), name: given.name ?? 'Ada', email: given.email ?? newEmail() },
        password: given.password ?? goodPassword,
      },
    })
  const signIn = (email: string, password = goodPassword, more: object = {}) =>
    send(nobody, 'POST', '/session', { body: { email, password, ...more } })

  return {
    token,
    send,
    ask,
    toVisitor,
    accept,
    signIn,
    comeIn: async (link: string, email?: string) => toVisitor(await accept(link, email === undefined ? {} : { email })),
    createAccount: (more: object = {}) =>
      ask<CreatedAccount>(token, 'POST', '/operator/accounts', { name: 'test', plan: 'unlimited', ...more }),
  }
}

export type Admin = ReturnType<typeof makeAdmin>

export const toToken = (link: string) => link.slice(link.indexOf('#') + 1)

function toCookie(answer: Answer): string {
  const [set = ''] = answer.headers['set-cookie'] ?? []
  return set.split(';', 1)[0] ?? ''
}

/** An account on its own with the sessions of its owner. */
export async function openAccount(admin: Admin, more: object = {}) {
  const created = await admin.createAccount(more)
  const email = newEmail('owner')
  return { ...created, email, owner: await admin.comeIn(created.invitation_url, email) }
}
