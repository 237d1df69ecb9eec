import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import type { Handlers } from '../../src/admin/call.ts'
import { registerAdmin } from '../../src/admin/register-admin.ts'
import type { AuditEntry, AuditLog } from '../../src/domain/ports/operations.ts'

const adminToken = 'a'.repeat(32)
const headers = { authorization: `Bearer ${adminToken}` }

test('a change whose handler writes nothing to the audit log gets an entry all the same', async () => {
  const noted: AuditEntry[] = []
  const audit = {
    note: async (entry: AuditEntry) => void noted.push(entry),
    atomically: (work) => work(),
  } as AuditLog
  const handlers = new Proxy({}, { get: (_, name) => handle(String(name)) }) as Handlers
  const handle = (name: string) => async (call: { audit(action: string, target: string): Promise<void> }) => {
    if (name === 'retryJob') await call.audit('job.retry', 'a job')
  }
  const throttle = { requireNoPause: async () => {} }
  const app = Fastify()
  registerAdmin(app, { audit, handlers, adminToken, signIn: {}, throttle } as never)
  const send = async (method: 'GET' | 'POST' | 'DELETE', url: string) =>
    (await app.inject({ method, url: `/admin/v1/operator${url}`, headers })).statusCode
  assert.deepEqual(
    [
      await send('DELETE', '/plans/old'),
      await send('POST', '/jobs/01a1ddc9-0d35-7158-bd28-a6637690ad47/retry'),
      await send('POST', '/self-test'),
      await send('GET', '/plans'),
    ].map((status) => status < 300),
    [true, true, true, true],
  )
  assert.deepEqual(
    noted.map(({ action }) => action),
    ['route.deletePlan', 'job.retry'],
  )
  assert.ok(noted.every(({ actor }) => actor !== ''))
  await app.close()
})
