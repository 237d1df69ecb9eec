import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { v7 } from 'uuid'
import { makeMemberStore } from '../../src/database/console/member-store.ts'
import { makeAttemptStore } from '../../src/database/console/session-store.ts'
import { shortenFutureWaits } from '../../src/database/future-times.ts'
import { makeHashListStore } from '../../src/database/hash-list-store.ts'
import { makeNodeStore } from '../../src/database/operations.ts'
import { makeRevisionStore } from '../../src/database/revision-store.ts'
import { toScanIdAt } from '../../src/database/scan-partitions.ts'
import { makeDatabaseClock } from '../../src/database/watch-database.ts'
import { newTestScan } from '../support/test-scan.ts'
import { testSealer } from '../support/test-sealer.ts'
import { leaseMs, openTestJobs, type TestJobs } from './test-jobs.ts'

const dayMs = 86_400_000
const monthDays = 40

/** The tests move rows 40 days into the future: for the rows, that is the same as setting the clock back. */
describe('after the clock of the database was set back', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  after(() => stores.close())

  const moveAhead = (table: string, ...columns: string[]) =>
    stores.pool.query(
      `update ${table} set ${columns.map((column) => `${column} = ${column} + interval '${monthDays} days'`).join(', ')}`,
    )
  const readSeconds = async (expression: string, table: string) => {
    const { rows } = await stores.pool.query<{ seconds: number }>(
      `select extract(epoch from ${expression} - now())::float8 as seconds from ${table}`,
    )
    return rows[0]?.seconds ?? Number.NaN
  }

  test('a rate window that begins in the future is over, of a key as of an account', async () => {
    await stores.plans.savePlan({
      name: 'shared',
      creditsPerPeriod: 100,
      rate: { requests: 2, periodSeconds: 60 },
      accountRate: { requests: 2, periodSeconds: 60 },
      maxKeys: null,
    })
    for (const plan of ['unlimited', 'shared']) {
      const rate = { requests: 2, periodSeconds: 60 }
      const { digest } = await stores.register({ plan, ...(plan === 'shared' ? {} : { rate }) })
      const ask = async () => (await stores.gate.admit({ keyDigest: digest, countsRequest: true })).outcome
      assert.deepEqual([await ask(), await ask(), await ask()], ['admitted', 'admitted', 'rate-limited'])
      await moveAhead('rate_windows', 'started_at')
      await moveAhead('account_windows', 'started_at')
      assert.deepEqual([await ask(), await ask(), await ask()], ['admitted', 'admitted', 'rate-limited'], plan)
    }
  })

  test('a batch that waited for a later one counts in its window, and does not open a new one', async () => {
    const { digest } = await stores.register({ rate: { requests: 2, periodSeconds: 60 } })
    const ask = async () => (await stores.gate.admit({ keyDigest: digest, countsRequest: true })).outcome
    assert.equal(await ask(), 'admitted')
    const client = await stores.pool.connect()
    try {
      await client.query('begin')
      // The statement of the gate begins, waits for this row, and then finds a window that began after the statement.
      await client.query('select from rate_windows for update')
      const waiting = ask()
      for (let isWaiting = false; !isWaiting; ) {
        const { rows } = await client.query(
          `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        )
        isWaiting = rows.length > 0
      }
      await client.query(`update rate_windows set started_at = clock_timestamp(), used = 2 where used > 0`)
      await client.query('commit')
      assert.equal(await waiting, 'rate-limited')
    } finally {
      client.release()
    }
  })

  test('a period that begins in the future rolls into the current one, once', async () => {
    const { id, digest } = await stores.register({ credits: 3 })
    const charge = () => stores.gate.admit({ keyDigest: digest, countsRequest: false, scan: newTestScan() })
    assert.equal((await charge()).outcome, 'admitted')
    await moveAhead('balances', 'period_anchor', 'period_start', 'period_end')
    const answers = await Promise.all(Array.from({ length: 6 }, charge))
    assert.equal(answers.filter(({ outcome }) => outcome === 'admitted').length, 3)
    const account = await stores.accounts.findAccount(id)
    const now = stores.database.clock.now()
    assert.ok(account && account.balance.period.start <= now && now < account.balance.period.end)
    const kinds = (await stores.accounts.listLedger(id, 10)).map(({ kind }) => kind)
    assert.equal(kinds.filter((kind) => kind === 'roll').length, 1)
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('a sign-in pause, a session and a link in the future are over', async () => {
    const attempts = makeAttemptStore({ pool: stores.pool })
    const limits = { freeFailures: 1, firstPauseMs: 60_000, longestPauseMs: 60_000, memoryMs: 3_600_000 }
    assert.equal(await attempts.countAttempt('guesser', limits), undefined)
    assert.notEqual(await attempts.countAttempt('guesser', limits), undefined)
    await moveAhead('sign_in_failures', 'last_at')
    assert.equal(await attempts.findPause('guesser', limits), undefined)
    assert.equal(await attempts.countAttempt('guesser', limits), undefined)
    assert.notEqual(await attempts.countAttempt('guesser', limits), undefined, 'the new failure counts')

    const members = makeMemberStore({ pool: stores.pool, sealer: testSealer })
    const digest = 'ab'.repeat(32)
    const link = { id: randomUUID(), digest, purpose: 'invitation' as const, role: 'operator' as const }
    await members.addLink({ ...link, accountId: null, memberId: null, email: null, lifetimeMs: dayMs })
    assert.equal((await members.findLink(digest))?.role, 'operator')
    await moveAhead('console_links', 'created_at', 'expires_at')
    assert.equal(await members.findLink(digest), undefined)
    await stores.pool.query('delete from console_links')
    await members.addLink({ ...link, accountId: null, memberId: null, email: null, lifetimeMs: dayMs })
    const person = { id: randomUUID(), name: 'Ada', email: 'ada@example.com', passwordHash: 'hash' }
    assert.equal(await members.acceptLink(digest, person), 'accepted')
    const session = { id: randomUUID(), digest, deviceDigest: digest, memberId: person.id, passwordHash: 'hash' }
    const more = { accountId: null, lifetimeMs: dayMs, isSso: false, expiresAt: null, address: '', agent: '' }
    assert(await members.openSession({ ...session, ...more }))
    assert.notEqual(await members.findSession(digest, dayMs), undefined)
    await moveAhead('console_sessions', 'created_at', 'last_seen_at', 'expires_at')
    assert.equal(await members.findSession(digest, dayMs), undefined)
  })

  test('leases and pauses of jobs end, and no job waits for the clock to come back', async () => {
    const { digest } = await stores.register()
    await stores.submit(digest)
    const [lost] = await stores.jobs.claim(1, leaseMs)
    assert.ok(lost !== undefined)
    assert.equal(await shortenFutureWaits(stores.database), 0, 'a lease of today is none in the future')
    await moveAhead('jobs', 'held_until')
    assert.deepEqual(await stores.jobs.claim(1, leaseMs), [])
    assert.equal(await shortenFutureWaits(stores.database), 1)
    const [again] = await stores.jobs.claim(1, leaseMs)
    assert.equal(again?.scan.id, lost.scan.id)
  })

  test('revisions and imports of hashes go on', async () => {
    const lists = makeHashListStore(stores.database)
    const options = { pool: stores.pool, decide: () => undefined, makeBody: () => '' }
    const revisions = makeRevisionStore(options)
    await stores.pool.query(`insert into revision_work (hashes) values (array['a'::bytea])`)
    await lists.beginImport({ name: 'cut', verdict: 'bad', origin: 'import', createdBy: 'test' })
    const [lost] = await revisions.claim(leaseMs)
    assert.ok(lost)
    assert.equal(await shortenFutureWaits(stores.database), 0)
    await moveAhead('revision_work', 'held_until', 'created_at')
    await moveAhead('hash_lists', 'importing_until')
    assert.deepEqual(await revisions.claim(leaseMs), [])
    assert.equal(await shortenFutureWaits(stores.database), 2)
    const [again] = await revisions.claim(leaseMs)
    assert.equal(again?.id, lost.id)
    assert.ok((await readSeconds('created_at', 'revision_work')) <= 0)
    const seconds = await readSeconds('importing_until', 'hash_lists')
    assert.ok(seconds > 0 && seconds <= 3600, `${seconds} s`)
  })

  test('deliveries keep the length of their pause', async () => {
    const { id: accountId } = await stores.register()
    const post = () =>
      stores.pool.query(
        `insert into deliveries (id, scan_id, account_id, url, host, body)
         values (gen_random_uuid(), gen_random_uuid(), $1, 'https://a.test/', 'a.test', '{}')`,
        [accountId],
      )
    const claim = async () => (await stores.deliveries.claim({ limit: 1, perHost: 1, leaseMs }))[0]
    const times = ['created_at', 'next_at', 'last_attempt_at']
    await post()
    await moveAhead('deliveries', ...times)
    assert.equal(await claim(), undefined)
    assert.equal(await shortenFutureWaits(stores.database), 1)
    assert.ok(await claim(), 'one without an attempt is due')
    await moveAhead('deliveries', ...times)
    assert.equal(await shortenFutureWaits(stores.database), 1)
    const claimed = await claim()
    assert.ok(claimed, 'the lease of a process that is gone ends')
    const attempt = { status: 500, durationMs: 20, answer: '' }
    const next = { state: 'pending' as const, pauseMs: 3 * 3_600_000 }
    assert(await stores.deliveries.recordAttempt(claimed, attempt, next, 5 * dayMs))
    assert.equal(await shortenFutureWaits(stores.database), 0, 'a pause of three hours is none in the future')
    await moveAhead('deliveries', ...times)
    await moveAhead('webhook_endpoints', 'failing_since', 'last_attempt_at')
    assert.equal(await shortenFutureWaits(stores.database), 1)
    const seconds = await readSeconds('next_at', 'deliveries')
    assert.ok(seconds > 2 * 3600 && seconds < 3 * 3600 + 60, `${seconds} s`)
    await stores.pool.query('update deliveries set next_at = now()')
    assert(await stores.deliveries.recordAttempt((await claim()) ?? claimed, attempt, next, 5 * dayMs))
    assert.ok((await readSeconds('failing_since', 'webhook_endpoints')) < 0, 'the receiver fails since now')
  })

  test('an idempotency key is kept for a day from now, and a result in the future keeps no old day', async () => {
    const { id: accountId, digest } = await stores.register()
    const idempotency = { operation: 'submit', key: 'k', fingerprint: 'ab' }
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan: newTestScan(), idempotency })
    await moveAhead('idempotency_keys', 'created_at')
    assert.equal(await shortenFutureWaits(stores.database), 1)
    assert.equal(await stores.idempotency.deleteIdempotencyKeys(dayMs), 0)
    assert.ok(await stores.idempotency.findRepeat(accountId, 'submit', 'k'))
    await stores.pool.query(`update idempotency_keys set created_at = created_at - interval '25 hours'`)
    assert.equal(await stores.idempotency.deleteIdempotencyKeys(dayMs), 1)

    const now = stores.database.clock.now().getTime()
    const [oldMs, aheadMs] = [now - 60 * dayMs, now + monthDays * dayMs]
    const [low, high] = [oldMs, oldMs + dayMs].map((ms) => toScanIdAt(new Date(ms)))
    await stores.pool.query(`create table scans_old partition of scans for values from ('${low}') to ('${high}')`)
    const record = async (idMs: number) => {
      const scan = newTestScan({ id: v7({ msecs: idMs }), createdAt: new Date(idMs), completedAt: new Date(aheadMs) })
      const completed = { ...scan, status: 'clean' as const, signals: [] }
      await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan: completed })
      return async () => (await stores.scans.findScan(accountId, 'malware', scan.id)) !== undefined
    }
    const [old, beforeAll, recent] = [await record(oldMs + 1000), await record(oldMs - dayMs), await record(now)]
    await stores.scans.deleteCompleted(30)
    const { rows } = await stores.pool.query(`select from pg_class where relname = 'scans_old'`)
    assert.equal(rows.length, 0)
    assert.deepEqual([await old(), await beforeAll(), await recent()], [false, false, true])
  })

  test('a node that is gone does not count as alive', async () => {
    const nodes = makeNodeStore(stores.database)
    const node = { name: 'box', roles: ['worker'], version: '1', status: 'ready', reasons: [], faults: {}, engines: [] }
    await nodes.recordHeartbeat({ ...node, id: randomUUID(), startedAt: new Date(0) })
    assert.equal(await nodes.countWorkers(), 1)
    await moveAhead('nodes', 'seen_at')
    assert.equal(await nodes.countWorkers(), 0)
    assert.equal(await nodes.deleteSilent(), 1)
  })
})

describe('the clock of the database, as a process keeps it', () => {
  const day = Date.parse('2026-03-01T12:00:00Z')
  /** A database whose answer takes so long, and a machine whose clocks the test sets. */
  function open() {
    const machine = { monotonicMs: 1000, wallMs: day, databaseMs: day, answerMs: 10 }
    const clock = makeDatabaseClock({ monotonicMs: () => machine.monotonicMs, wallMs: () => machine.wallMs })
    const query = async () => {
      machine.monotonicMs += machine.answerMs / 2
      const rows = [{ ms: machine.databaseMs }]
      machine.monotonicMs += machine.answerMs / 2
      return { rows }
    }
    return { machine, clock, measure: () => clock.measure({ query } as never) }
  }

  test('follows neither the clock of the machine nor a slow answer', async () => {
    const { machine, clock, measure } = open()
    machine.wallMs += monthDays * dayMs
    await measure()
    assert.equal(clock.now().getTime(), day + 5)
    machine.monotonicMs += 3_600_000
    machine.wallMs -= 1e10
    assert.equal(clock.now().getTime(), day + 5 + 3_600_000)
    // The answer was read late, as by a process that had no processor: it proves nothing against the estimate.
    machine.databaseMs = day + 3_600_000 + 100
    machine.answerMs = 1900
    await measure()
    assert.equal(clock.now().getTime(), day + 5 + 3_600_000 + 1900)
    // A slow answer that contradicts the estimate moves it no further than it proves.
    machine.databaseMs = day
    machine.answerMs = 2800
    await measure()
    assert.equal(clock.now().getTime(), day + 2800)
  })

  test('follows the database, and tells by how much the machine differs beyond 5 s', async () => {
    const { machine, clock, measure } = open()
    await measure()
    assert.equal(clock.findFault(), undefined)
    for (const [differenceMs, fault] of [
      [4900, undefined],
      [-4900, undefined],
      [90_000, /90 s ahead of PostgreSQL/],
      [-2 * dayMs, /172800 s behind PostgreSQL/],
    ] as const) {
      machine.databaseMs = machine.wallMs - differenceMs
      await measure()
      assert.ok(Math.abs(clock.findDifferenceMs() - differenceMs) <= 10, String(clock.findDifferenceMs()))
      if (fault === undefined) assert.equal(clock.findFault(), undefined)
      else assert.match(clock.findFault() ?? '', fault)
    }
  })
})
