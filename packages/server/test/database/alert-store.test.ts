import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { makeAlertStore } from '../../src/database/alert-store.ts'
import { makeNodeStore } from '../../src/database/operations.ts'
import { findConditions } from '../../src/domain/alerts.ts'
import type { AlertChannel } from '../../src/domain/ports/alert-store.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { testSealer } from '../support/test-sealer.ts'

const pauseMs = 1000
const leaseMs = 60_000

describe('alerts', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let store: ReturnType<typeof makeAlertStore>
  const account = randomUUID()
  const run = (statement: string, values: unknown[] = []) => database.pool.query(statement, values)
  before(async () => {
    database = await openTestDatabase()
    store = makeAlertStore({ pool: database.pool, sealer: testSealer })
    await run(`insert into accounts (id, name, plan, webhook_secret) values ($1, 'Ada Ltd', 'free', '')`, [account])
    await run(
      `insert into balances (account_id, allocated, credit_limit, credit_remaining, period_anchor, period_start, period_end)
       values ($1, 100, 100, 100, now(), now() - interval '1 day', now() + interval '1 day')`,
      [account],
    )
  })
  beforeEach(async () => {
    await run('truncate alert_channels, alerts, alert_messages, nodes, scans, webhook_endpoints, node_minutes')
    await run('update balances set credit_remaining = 100')
  })
  after(() => database.drop())

  const addChannel = async (change: Partial<AlertChannel>) => {
    const channel: AlertChannel = {
      id: randomUUID(),
      accountId: account,
      kind: 'webhook',
      target: 'https://hooks.example.com/secret',
      secret: null,
      topics: ['credits'],
      threatsPerHour: 4,
      ...change,
    }
    await store.addChannel(channel, 'ada')
    return channel
  }
  const look = (minAgeMs = 0) => store.update(findConditions, minAgeMs)
  const listMessages = async () =>
    (await run('select state, topic, text from alert_messages order by created_at, state')).rows as {
      state: string
      topic: string
      text: string
    }[]
  const listStates = async () => (await listMessages()).map(({ state, topic }) => `${state} ${topic}`)
  const setCredits = (remaining: number) => run('update balances set credit_remaining = $1', [remaining])

  const addThreat = (accountId: string, age: string, metadata: object = {}) =>
    run(
      `insert into scans (id, account_id, kind, mode, status, region, content_length, content_type, metadata, created_at)
       values ($1, $2, 'malware', 'sync', 'threat', 'x', 1, 'text/plain', $3, now() - $4::interval)`,
      [randomUUID(), accountId, metadata, age],
    )

  test('without a channel nothing is recorded', async () => {
    await setCredits(0)
    await look()
    assert.deepEqual((await run('select from alerts')).rowCount, 0)
  })

  test('an alert is told once and its end once, however many processes look', async () => {
    await addChannel({})
    await look()
    assert.deepEqual(await listStates(), [])
    await setCredits(20)
    const other = makeAlertStore({ pool: database.pool, sealer: testSealer })
    await Promise.all([look(), other.update(findConditions, 0), look()])
    await look()
    assert.deepEqual(await listStates(), ['firing credits'])
    assert.match((await listMessages())[0]?.text ?? '', /^80 of 100 credits of Ada Ltd are used\./)
    assert.deepEqual(
      (await store.listOpen(account)).map(({ topic }) => topic),
      ['credits'],
    )
    await setCredits(21)
    await Promise.all([look(), other.update(findConditions, 0)])
    await look()
    assert.deepEqual(await listStates(), ['firing credits', 'resolved credits'])
    assert.deepEqual(await store.listOpen(account), [])
  })

  test('credits are told at 80 and at 100 percent, and only once if they are gone at once', async () => {
    await addChannel({})
    await setCredits(10)
    await look()
    await setCredits(0)
    await look()
    assert.deepEqual(
      (await listMessages()).map(({ text }) => text.slice(0, 14)),
      ['90 of 100 cred', 'All 100 credit'],
    )
    await run('truncate alerts, alert_messages')
    await look()
    assert.deepEqual(
      (await listMessages()).map(({ text }) => text.slice(0, 14)),
      ['All 100 credit'],
    )
  })

  test('a balance whose period is over is not told', async () => {
    await addChannel({})
    await setCredits(0)
    await run(`update balances set period_end = now() - interval '1 hour'`)
    await look()
    assert.deepEqual(await listStates(), [])
    await run(`update balances set period_end = now() + interval '1 day'`)
  })

  test('threats are told from the limit on, and end at half of it; test scans and other accounts do not count', async () => {
    await addChannel({ topics: ['threats'] })
    for (let n = 0; n < 3; n++) await addThreat(account, '1 minute')
    await addThreat(account, '1 minute', { test: true })
    await addThreat(account, '2 hours')
    await addThreat(randomUUID(), '1 minute')
    await look()
    assert.deepEqual(await listStates(), [])
    await addThreat(account, '1 minute')
    await look()
    assert.deepEqual(await listStates(), ['firing threats'])
    await run(`delete from scans where id = (select id from scans where account_id = $1 and metadata = '{}' limit 1)`, [
      account,
    ])
    await look()
    assert.deepEqual(await listStates(), ['firing threats'])
    await run('truncate scans')
    await look()
    assert.deepEqual(await listStates(), ['firing threats', 'resolved threats'])
  })

  test('threats of the installation are those of all nodes', async () => {
    await addChannel({ accountId: null, topics: ['threats'] })
    for (const node of [randomUUID(), randomUUID()])
      await run(
        `insert into node_minutes values (date_trunc('minute', now() - interval '5 minutes'), $1, 9, 1, 9, 9, 1, 9, 0, 0,
           '{}', 0, 0, 0, 0, 0)`,
        [node],
      )
    await look()
    assert.deepEqual(
      (await listMessages()).map(({ text }) => text),
      ['4 threats were found within an hour; the limit is 4.'],
    )
  })

  test('a fault of a node is told when it has lasted for a minute, and its end likewise', async () => {
    await addChannel({ accountId: null, topics: ['engine', 'signatures', 'disk'] })
    const nodes = makeNodeStore(database)
    const beat = (faults: Record<string, string>, id = 'a0000000-0000-4000-8000-000000000000') =>
      nodes.recordHeartbeat({
        id,
        name: 'box',
        roles: ['worker'],
        version: '1',
        startedAt: new Date(),
        status: 'degraded',
        reasons: [],
        faults,
        engines: [],
      })
    const pass = (seconds: number) =>
      run(
        `update alerts set since = since - $1 * interval '1 second', absent_since = absent_since - $1 * interval '1 second'`,
        [seconds],
      )
    const fault = { 'malware engine': 'ClamAV does not answer.', clock: 'The clock is wrong.' }
    await beat(fault)
    await look()
    await pass(30)
    await look()
    assert.deepEqual(await listStates(), [])
    // A node that recovers in time causes no message.
    await beat({})
    await look()
    await beat(fault)
    await look()
    await pass(30)
    await look()
    assert.deepEqual(await listStates(), [])
    await pass(31)
    await look()
    assert.deepEqual(
      (await listMessages()).map(({ state, topic, text }) => [state, topic, text]),
      [['firing', 'engine', 'Node box: ClamAV does not answer.']],
    )
    // A restart is no recovery.
    await run('truncate nodes')
    await look()
    await pass(30)
    await beat(fault, randomUUID())
    await look()
    // A node that is silent has not recovered either.
    await run(`update nodes set seen_at = now() - interval '10 minutes'`)
    await look()
    await pass(120)
    await look()
    assert.equal((await listMessages()).length, 1)
    // A new process of the node speaks for it.
    await beat({}, randomUUID())
    await look()
    await pass(30)
    await look()
    assert.equal((await listMessages()).length, 1)
    await pass(31)
    await run(`delete from nodes where faults::text <> '{}'`)
    // A process that is silent at the end of the minute may have failed again.
    await run(`update nodes set seen_at = now() - interval '10 minutes'`)
    await look()
    assert.equal((await listMessages()).length, 1)
    await beat({}, randomUUID())
    await look()
    assert.deepEqual(await listStates(), ['firing engine', 'resolved engine'])
    // A node that is gone has not recovered: its alert ends without a message.
    await beat(fault, randomUUID())
    await look()
    await pass(61)
    await look()
    await run('truncate nodes')
    await look()
    await pass(61)
    await look()
    assert.deepEqual(await listStates(), ['firing engine', 'resolved engine', 'firing engine'])
    assert.equal((await run('select from alerts')).rowCount, 0)
  })

  test('dead receivers are told by host, to the account and to the operators', async () => {
    await addChannel({ topics: ['webhooks'] })
    await addChannel({ accountId: null, topics: ['webhooks'] })
    for (const path of ['a', 'b'])
      await run(
        `insert into webhook_endpoints (account_id, url, host, last_attempt_at, dead_since)
         values ($1, 'https://receiver.example.com/' || $2::text, 'receiver.example.com', now(), now())`,
        [account, path],
      )
    await look()
    const texts = (await listMessages()).map(({ text }) => text.replace(/since .*/, '')).sort()
    assert.deepEqual(texts, [
      'Webhooks of Ada Ltd to receiver.example.com have failed for good ',
      'Webhooks to receiver.example.com have failed for good ',
    ])
    const other = randomUUID()
    await run(`insert into accounts (id, name, plan, webhook_secret) values ($1, 'Eve Ltd', 'free', '')`, [other])
    await run(
      `insert into webhook_endpoints (account_id, url, host, last_attempt_at, dead_since)
       select $1, url, host, last_attempt_at, dead_since from webhook_endpoints limit 1`,
      [other],
    )
    await look()
    const added = (await listMessages()).map(({ text }) => text).filter((text) => text.includes('Eve Ltd'))
    assert.equal(added.length, 1, 'operators hear of each account with the same receiver')
    assert.equal((await listMessages()).length, 3)
  })

  test('a message is leased to one process, tried again after its pause, and given up at the end', async () => {
    const channel = await addChannel({})
    await setCredits(0)
    await look()
    await setCredits(100)
    await look()
    const [first, ...others] = await store.claim(10, leaseMs)
    assert(first)
    assert.deepEqual(others, [], 'the end of an alert waits for its beginning')
    assert.deepEqual(
      [first.message.state, first.channel.target, first.attempts],
      ['firing', 'https://hooks.example.com/secret', 0],
    )
    assert.deepEqual(await store.claim(10, leaseMs), [])
    await store.recordAttempt(first, { failure: 'No answer.', pauseMs })
    assert.deepEqual(await store.claim(10, leaseMs), [])
    assert.equal((await store.listChannels(account))[0]?.failure, 'No answer.')
    await run('update alert_messages set next_at = now()')
    const [second] = await store.claim(10, leaseMs)
    assert(second)
    assert.equal(second.attempts, 1)
    // The first claim is not the newest any more.
    await store.recordAttempt(first, { failure: null, pauseMs: undefined })
    assert.equal((await listMessages()).length, 2)
    await store.recordAttempt(second, { failure: null, pauseMs: undefined })
    const [third] = await store.claim(10, leaseMs)
    assert.equal(third?.message.state, 'resolved')
    const [shown] = await store.listChannels(account)
    assert(shown?.sentAt instanceof Date)
    assert.equal(shown.failure, null)
    assert.equal(await store.removeChannel(null, channel.id), false, 'a channel of an account is not of the operators')
    assert.equal(await store.removeChannel(account, channel.id), true)
    assert.deepEqual(await listMessages(), [])
  })

  test('a topic that is not chosen any more ends without a message', async () => {
    const { id } = await addChannel({ topics: ['credits', 'threats'] })
    await setCredits(0)
    await look()
    await run('truncate alert_messages')
    assert.equal(await store.updateChannel(account, id, { topics: ['threats'], threatsPerHour: 9 }), true)
    await look()
    assert.deepEqual(await listStates(), [])
    assert.equal(await store.updateChannel(null, id, { topics: ['threats'], threatsPerHour: 9 }), false)
    assert.equal(await store.updateChannel(account, id, { topics: ['credits'], threatsPerHour: undefined }), true)
    assert.equal((await store.listChannels(account))[0]?.threatsPerHour, 9)
  })

  test('a channel that names a topic twice is told once, and stops no other channel', async () => {
    await addChannel({ topics: ['credits', 'credits'] })
    await addChannel({})
    await setCredits(0)
    await look()
    assert.deepEqual(await listStates(), ['firing credits', 'firing credits'])
  })

  test('a process does not look again soon after another one', async () => {
    await addChannel({})
    await look()
    await setCredits(0)
    await look(60_000)
    assert.deepEqual(await listStates(), [])
    // The clock of the database was set back since the last look.
    await run(`update alert_look set looked_at = now() + interval '1 hour'`)
    await look(60_000)
    assert.deepEqual(await listStates(), ['firing credits'])
  })

  test('while threats cannot be counted, other alerts are sent and an open one stays open', async () => {
    await addChannel({ topics: ['threats', 'credits'], threatsPerHour: 1 })
    await addThreat(account, '1 minute')
    await look()
    assert.deepEqual(await listStates(), ['firing threats'])
    await run('truncate scans')
    await setCredits(0)
    const holder = await database.pool.connect()
    try {
      await holder.query('begin; lock table scans in access exclusive mode')
      await look()
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    assert.deepEqual(await listStates(), ['firing threats', 'firing credits'])
    await look()
    assert.deepEqual(await listStates(), ['firing threats', 'firing credits', 'resolved threats'])
  })

  test('mail goes to members of the account only, and not after they have left', async () => {
    const member = randomUUID()
    await run(`insert into members (id, email, name, password_hash) values ($1, 'Ada@example.com', 'Ada', '')`, [
      member,
    ])
    await run(`insert into memberships (member_id, account_id, role) values ($1, $2, 'owner')`, [member, account])
    assert.equal(await store.isMemberEmail(account, 'ada@example.com'), true)
    assert.equal(await store.isMemberEmail(account, 'eve@example.com'), false)
    await addChannel({ kind: 'email', target: 'ada@example.com' })
    await setCredits(0)
    await look()
    assert.equal((await listStates()).length, 1)
    await run('delete from memberships')
    assert.deepEqual(await store.claim(10, leaseMs), [])
  })

  test('the address of a channel is sealed', async () => {
    await addChannel({ target: 'https://hooks.example.com/T0/B0/token' })
    const { rows } = await run('select email, sealed from alert_channels')
    assert.equal(rows[0].email, null)
    assert(!Buffer.from(rows[0].sealed).includes('hooks.example.com'))
  })
})
