import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { adminPath, type CreatedAccount as CreatedAccountSchema, csrfHeader } from '@assay/contract/admin'
import type { Static } from 'typebox'
import { type Answer, sendTo } from './http.ts'

/** The headers that identify a caller of the admin API. */
export type Visitor = Record<string, string>
export type CreatedAccount = Static<typeof CreatedAccountSchema>

export const nobody: Visitor = {}
export const goodPassword = 'correct horse battery staple'
export const newEmail = (name = 'ada') => `${name}-${randomUUID()}@example.com`

type Person = { email?: string; name?: string; password?: string; code?: string }
type Options = { body?: unknown; headers?: Record<string, string | undefined> }

/** Calls the admin API of a service as the console and scripts do. */
export function makeAdmin(url: string, adminToken: string) {
  const token: Visitor = { authorization: `Bearer ${adminToken}` }

  /** Sends a request. A body that is a string or bytes is sent unchanged, other bodies as JSON. */
  function send(who: Visitor, method: string, path: string, { body, headers = {} }: Options = {}): Promise<Answer> {
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    return sendTo(url, {
      method,
      path: adminPath + path,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...who, ...headers },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    })
  }

  /** Sends a request that must succeed, and returns the body of the response. */
  async function ask<T>(who: Visitor, method: string, path: string, body?: unknown): Promise<T> {
    const answer = await send(who, method, path, { body })
    assert(answer.status === 200 || answer.status === 204, `${method} ${path}: ${answer.status} ${answer.text}`)
    return (answer.text === '' ? undefined : JSON.parse(answer.text)) as T
  }

  /** The visitor of the session that a response has opened. */
  async function toVisitor(answer: Answer): Promise<Visitor> {
    assert.equal(answer.status, 200, answer.text)
    const cookie = toCookie(answer)
    const { csrf_token: csrfToken } = await ask<{ csrf_token: string }>({ cookie }, 'GET', '/session')
    return { cookie, [csrfHeader.toLowerCase()]: csrfToken }
  }

  /** Accepts a one-time link, whose token is in the fragment. */
  const accept = (link: string, given: Person = {}, who: Visitor = nobody) =>
    send(who, 'POST', '/link/accept', {
      body: {
        token: toToken(link),
        name: given.name ?? 'Ada',
        email: given.email ?? newEmail(),
        password: given.password ?? goodPassword,
        ...(given.code === undefined ? {} : { code: given.code }),
      },
    })
  const signIn = (email: string, password = goodPassword, more: object = {}, who: Visitor = nobody) =>
    send(who, 'POST', '/session', { body: { email, password, ...more } })

  return {
    token,
    send,
    ask,
    toVisitor,
    accept,
    signIn,
    join: async (link: string, email?: string) => toVisitor(await accept(link, email === undefined ? {} : { email })),
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

/** A new account with a session of its owner. */
export async function openAccount(admin: Admin, more: object = {}) {
  const email = newEmail('owner')
  const created = await admin.createAccount({ owner_email: email, ...more })
  return { ...created, email, owner: await admin.join(created.invitation_url ?? '', email) }
}

/** The code of an authenticator app by RFC 6238, `stepsAhead` of now; independent of the implementation in the service. */
export function toCode(secret: string, stepsAhead = 0): string {
  const bits = [...secret]
    .map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'))
    .join('')
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigInt64BE(BigInt(Math.floor(Date.now() / 30_000) + stepsAhead))
  const mac = createHmac('sha1', key).update(counter).digest()
  return String((mac.readUInt32BE((mac[19] ?? 0) & 15) & 0x7fff_ffff) % 1_000_000).padStart(6, '0')
}
