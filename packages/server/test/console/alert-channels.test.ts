import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { makeAlertHandlers } from '../../src/admin/alert-handlers.ts'
import type { Call } from '../../src/admin/call.ts'
import { makeAlertStore } from '../../src/database/alert-store.ts'
import { Problem } from '../../src/domain/problem.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { testSealer } from '../support/test-sealer.ts'

test('a channel whose address does not open is listed, not tested, and can be removed', async (t) => {
  const database = await openTestDatabase()
  t.after(() => database.drop())
  const alerts = makeAlertStore({ pool: database.pool, sealer: testSealer })
  const sent: string[] = []
  const handlers = makeAlertHandlers({
    alerts,
    send: async ({ target }: { target: string }) => {
      sent.push(target)
      return null
    },
    clock: { now: () => new Date() },
    hasEmail: false,
  } as unknown as Parameters<typeof makeAlertHandlers>[0])
  const addChannel = async (host: string) => {
    const id = randomUUID()
    const target = `https://${host}/hook`
    const channel = { id, accountId: null, kind: 'slack', target, secret: null, threatsPerHour: 1 } as const
    await alerts.addChannel({ ...channel, topics: ['disk'] }, 'ada')
    return id
  }
  const call = (id: string) => ({ params: { id }, audit: async () => {} }) as unknown as Call<'testAlertChannel'>
  const listTargets = async () => (await handlers.getAlerts()).channels.map(({ target }) => target)

  const broken = await addChannel('a.example')
  const good = await addChannel('b.example')
  await database.pool.query(`update alert_channels set sealed = '\\x00' where id = $1`, [broken])
  assert.deepEqual(await listTargets(), ['unreadable address', 'b.example'])
  const failures = (await handlers.getAlerts()).channels.map(({ failure }) => failure)
  assert.match(failures[0] ?? '', /cannot be opened/)
  assert.equal(failures[1], null)

  await assert.rejects(
    handlers.testAlertChannel(call(broken)),
    (error) => error instanceof Problem && error.refusal.kind === 'conflict',
  )
  await handlers.testAlertChannel(call(good))
  assert.deepEqual(sent, ['https://b.example/hook'])

  await handlers.removeAlertChannel(call(broken) as unknown as Call<'removeAlertChannel'>)
  assert.deepEqual(await listTargets(), ['b.example'])
})
