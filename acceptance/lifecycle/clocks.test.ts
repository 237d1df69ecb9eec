import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { headers } from '@assay/contract'
import { openTestDatabase } from '../../packages/server/test/support/test-database.ts'
import { type CreatedAccount, goodPassword, makeAdmin, newEmail, toCode, type Visitor } from '../support/console.ts'
import { type FakeClock, lacksFaketime, openFakeClock, toRunner } from '../support/faketime.ts'
import { world } from '../support/origin.ts'
import { openReceiver, type Receiver, verifyDelivery } from '../support/receiver.ts'
import { type Service, startService, withoutImages } from '../support/start-service.ts'
import { makeCaller, toId, toResult } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const adminToken = 'token-of-an-operator-of-many-clocks'
const hour = 3600
const day = 24 * hour

/** Two nodes, one after the other: the first is behind PostgreSQL, the second ahead, beyond the retention of 30 days. */
const nodes = [
  { start: '-40d', offsets: { '-40d': -40 * day, '-2d': -2 * day, '-1h': -hour, '-90': -90 } },
  { start: '+40d', offsets: { '+40d': 40 * day, '+2d': 2 * day, '+1h': hour, '+90': 90 } },
]

describe('a node whose clock is wrong', { skip: lacksFaketime() }, () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let receiver: Receiver
  let clock: FakeClock
  let service: Service
  let account: CreatedAccount
  let limited: CreatedAccount
  let visitor: Visitor
  const email = newEmail()
  const first = { key: randomUUID(), id: '', spent: 0 }
  before(async () => {
    database = await openTestDatabase()
    receiver = await openReceiver(() => ({ status: 500 }))
  })
  after(async () => {
    await service?.stop()
    clock?.remove()
    await receiver?.close()
    await database?.drop()
  })

  /** The data directory is new for each node; the master key is the same. */
  async function start(offset: string) {
    await service?.stop()
    clock?.remove()
    clock = openFakeClock(offset)
    const settings = {
      ...withoutImages,
      ASSAY_DATABASE_URL: database.url,
      ASSAY_MASTER_KEY: 'c'.repeat(64),
      ASSAY_ADMIN_TOKEN: adminToken,
      ASSAY_OUTBOUND_ALLOW: world,
      ASSAY_WEBHOOK_RETRIES: '1h,1h,1h',
    }
    service = await startService(settings, 'kept', { under: toRunner(clock) })
  }
  const admin = () => makeAdmin(service.url, adminToken)
  const caller = () => makeCaller(service.url, account.api_key)
  const readTime = async () => {
    const { rows } = await database.pool.query<{ now: Date }>('select clock_timestamp() as now')
    return rows[0]?.now.getTime() ?? 0
  }
  const submit = (key: string, path: string) =>
    caller()
      .sendFile(
        'malware',
        'submit',
        'harmless',
        { callback_url: `${receiver.url}${path}` },
        { [headers.idempotencyKey]: key },
      )
      .then(toId)

  /** The node says how wrong its clock is, and does all that it does by the clock of the database. */
  async function check(offset: string, seconds: number) {
    clock.set(offset)
    await checkReport(seconds)
    const path = `/${offset}`
    const before = await readTime()
    const id = await submit(randomUUID(), path)
    const result = await caller().complete('malware', id)
    const after = await readTime()
    const times = [result.created_at, result.completed_at].map((at) => Date.parse(at ?? ''))
    // The clock in the node is as exact as the way to the database is short.
    for (const at of times) assert(at > before - 1000 && at < after + 1000, `${offset}: ${JSON.stringify(result)}`)

    const { rows: deliveries } = await waitForAttempt(id)
    assert.equal(deliveries.length, 1)
    const { attempts, due } = deliveries[0] ?? { attempts: 0, due: 0 }
    assert.equal(attempts, 1, offset)
    assert(due > 0.5 * hour && due < 1.3 * hour, `${offset}: the next attempt is due in ${due} s`)
    const [received, ...more] = receiver.at(path)
    assert(received !== undefined && more.length === 0)
    // Checks webhook-timestamp as well.
    verifyDelivery(received, account.webhook_secret)

    assert.equal(await submit(first.key, '/first'), first.id, 'the idempotency key of the first submit is known')
    assert.equal(await caller().readSpent(), ++first.spent)
    toResult(await caller().fetchResult('malware', first.id), 200)
    const refused = await makeCaller(service.url, limited.api_key).fetchResult('malware', first.id)
    assert.equal(refused.status, 429, 'the rate window of two requests an hour is the same on all nodes')
    const wait = Number(refused.headers['retry-after'])
    assert(wait > 0 && wait <= hour, `${offset}: Retry-After ${wait}`)
    assert.equal((await admin().send(visitor, 'GET', '/session')).status, 200, 'the session lasts')
  }

  async function checkReport(seconds: number) {
    const answer = await fetch(`${service.url}/readyz`)
    const { reasons, checks } = (await answer.json()) as { reasons: string[]; checks: { clock: string } }
    assert.deepEqual([answer.status, checks.clock], [200, 'fault'])
    const [, said, side] = /clock of this machine is (\d+) s (ahead of|behind) PostgreSQL/.exec(reasons.join()) ?? []
    assert(Math.abs(Number(said) - Math.abs(seconds)) <= 2, reasons.join())
    assert.equal(side, seconds > 0 ? 'ahead of' : 'behind')
    const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
    const value = Number(/^assay_clock_difference_seconds\{.*\} (\S+)$/m.exec(metrics)?.[1])
    assert(Math.abs(value - seconds) <= 2, String(value))
  }

  async function waitForAttempt(scanId: string) {
    const read = () =>
      database.pool.query<{ attempts: number; due: number }>(
        `select attempts, extract(epoch from next_at - now())::float8 as due from deliveries
         where scan_id = $1 and attempts > 0 and lease_token is null`,
        [scanId],
      )
    await waitUntil('the first attempt at the webhook', async () => (await read()).rows.length > 0)
    return read()
  }

  test('behind: schedules, results, idempotency, rates and sessions go by the clock of PostgreSQL', async () => {
    await start('-40d')
    account = await admin().createAccount({ credits: 100 })
    limited = await admin().createAccount({ rate: '2/1h' })
    visitor = await admin().join((await admin().createAccount({ owner_email: email })).invitation_url ?? '', email)
    first.id = await submit(first.key, '/first')
    first.spent++
    await caller().complete('malware', first.id)
    for (let n = 0; n < 2; n++) {
      const answer = await makeCaller(service.url, limited.api_key).fetchResult('malware', first.id)
      assert.notEqual(answer.status, 429)
    }
    for (const [offset, seconds] of Object.entries(nodes[0]?.offsets ?? {})) await check(offset, seconds)
    const { secret } = await admin().ask<{ secret: string }>(visitor, 'POST', '/totp', { password: goodPassword })
    await admin().ask(visitor, 'PUT', '/totp', { code: toCode(secret) })
    await assertSignIn(secret, 1)
    assert.equal(countLines('differs from that of the database'), 1, 'the log says it once')
  })

  test('ahead: nothing that is young is swept, and all the rest as behind', async () => {
    // A job that no node can run: it may wait for a day.
    const waiting = randomUUID()
    await database.pool.query(
      `insert into jobs (scan_id, account_id, queue, url) values ($1, $2, 'malware elsewhere', 'https://a.test/')`,
      [waiting, account.account.id],
    )
    const countRows = async () => {
      const tables = ['jobs', 'deliveries', 'idempotency_keys', 'scans', 'console_sessions']
      const counts = tables.map((table) => `(select count(*) from ${table})::int as ${table}`)
      return (await database.pool.query(`select ${counts.join(', ')}`)).rows[0]
    }
    const kept = await countRows()
    // The sweeper runs before the service is ready.
    await start('+40d')
    assert.deepEqual(await countRows(), kept)
    for (const [offset, seconds] of Object.entries(nodes[1]?.offsets ?? {})) await check(offset, seconds)
    const { rows } = await database.pool.query('select from jobs where scan_id = $1', [waiting])
    assert.equal(rows.length, 1)
    clock.set('+0')
    await waitUntil('the clocks to agree', async () => {
      const { checks } = (await (await fetch(`${service.url}/readyz`)).json()) as { checks: { clock: string } }
      return checks.clock === 'ok'
    })
    await waitUntil('the log to say so', () => countLines('agrees with that of the database again') === 1)
    assert.equal(countLines('differs from that of the database'), 1, 'the log says it once')
  })

  const countLines = (text: string) => service.log().split(text).length - 1

  /** Signs in with a code that an app shows now, or a step later, because each code works once. */
  async function assertSignIn(secret: string, stepsAhead: number) {
    const answer = await admin().signIn(email, goodPassword, { code: toCode(secret, stepsAhead) })
    assert.equal(answer.status, 200, answer.text)
  }
})
