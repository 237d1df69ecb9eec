import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { admissionStatements } from '../../src/database/admission-statements.ts'
import { completeStatement, findScansStatement } from '../../src/database/job-statements.ts'
import { findGaps, toPartition, toScanIdAt } from '../../src/database/scan-partitions.ts'
import type { NewJob } from '../../src/domain/ports/job-store.ts'
import { newTestScan } from '../support/test-scan.ts'
import { ago, dayMs, makeDayIn, newIdAt } from './test-days.ts'
import { openTestJobs, type TestJobs, testQueue, toCompletion, toFailure } from './test-jobs.ts'

/** Whether a statement of another connection waits for this event. */
async function isWaiting({ pool }: TestJobs, event: string): Promise<boolean> {
  const text = 'select from pg_stat_activity where datname = current_database() and $1 in (wait_event_type, wait_event)'
  return (await pool.query(text, [event])).rowCount !== 0
}

/** Holds up every statement that adds debits to the ledger, without a lock, until `end` is called. */
async function holdUpFolds(stores: TestJobs) {
  await stores.pool.query(`
    create table folds (is_held boolean, statement_timeout text, enable_seqscan text);
    insert into folds values (true);
    create function hold_up() returns trigger language plpgsql as $$
    begin
      while exists (select from folds where is_held) loop perform pg_sleep(0.005); end loop;
      insert into folds values (false, current_setting('statement_timeout'), current_setting('enable_seqscan'));
      return new;
    end $$;
    create trigger hold_up before insert on credit_ledger
    for each row when (new.kind = 'debit') execute function hold_up()`)
  return {
    async hasBegun() {
      while (!(await isWaiting(stores, 'PgSleep'))) await wait(5)
    },
    end: () => stores.pool.query('update folds set is_held = false'),
    listSettings: async () => (await stores.pool.query('select * from folds where statement_timeout is not null')).rows,
    remove: () => stores.pool.query('drop trigger hold_up on credit_ledger; drop function hold_up; drop table folds'),
  }
}

describe('the spans of partitions', () => {
  const now = new Date('2026-11-15T12:00:00Z')
  const partition = (from: string, to: string) => ({
    name: '',
    from: new Date(from),
    to: new Date(to),
    estimatedRows: 1,
  })
  const say = (gaps: { from: Date; to: Date }[]) =>
    gaps.map(({ from, to }) => [from, to].map((time) => time.toISOString().slice(5, 10)).join(' '))

  test('are days, from today on, or longer when results are kept long', () => {
    assert.deepEqual(say(findGaps(now, 30, [])), ['11-15 11-16', '11-16 11-17', '11-17 11-18'])
    const long = findGaps(now, 365, [])
    assert.ok(long.length <= 4)
    assert.ok((long.at(-1)?.to.getTime() ?? 0) > now.getTime() + 24 * dayMs)
  })

  test('fill the gaps between existing partitions and never overlap', () => {
    const there = [partition('2026-11-01', '2026-11-16'), partition('2026-11-17', '2026-11-30')]
    assert.deepEqual(say(findGaps(now, 30, there)), ['11-16 11-17'])
    assert.deepEqual(say(findGaps(now, 30, [partition('2026-11-10', '2026-12-30')])), [])
  })

  test('are parsed from PostgreSQL’s description', () => {
    const [from, to] = [new Date('2026-11-15'), new Date('2026-11-16')]
    const bound = (text: string) => toPartition({ name: 'a', bound: text, estimatedRows: 1 })
    const range = `FOR VALUES FROM ('${toScanIdAt(from)}') TO ('${toScanIdAt(to)}')`
    assert.deepEqual(bound(range), { name: 'a', from, to, estimatedRows: 1 })
    const before = `FOR VALUES FROM (MINVALUE) TO ('${toScanIdAt(to)}')`
    assert.deepEqual(bound(before), { name: 'a', from: undefined, to, estimatedRows: 1 })
    assert.deepEqual(bound('DEFAULT'), { name: 'a', from: undefined, to: undefined, estimatedRows: 1 })
  })
})

describe('the partitions of results', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  after(() => stores.close())

  const listNames = async () => {
    const { rows } = await stores.pool.query<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'scans'::regclass order by 1`,
    )
    return rows.map(({ name }) => name)
  }
  /** The partition of a scan. */
  const locate = async (id: string) => {
    const { rows } = await stores.pool.query<{ name: string }>(
      'select tableoid::regclass::text as name from scans where id = $1',
      [id],
    )
    return rows[0]?.name
  }
  const makeDay = (time: Date) => makeDayIn(stores, time)
  const record = async (digest: string, createdAt: Date, completedAt: Date | null) => {
    const completed = completedAt === null ? {} : { status: 'clean' as const, signals: [] }
    const scan = newTestScan({ id: newIdAt(createdAt), createdAt, completedAt, ...completed })
    assert.equal((await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })).outcome, 'admitted')
    return scan.id
  }

  test('are created ahead once, by nodes that do not know of each other', async () => {
    const { digest } = await stores.register()
    const early = await record(digest, ago(-1), null)
    assert.equal(await locate(early), 'scans_default')
    await Promise.all(Array.from({ length: 4 }, () => stores.scans.createPartitions(30)))
    await stores.scans.createPartitions(30)
    const days = [0, -2].map((n) => `scans_${ago(n).toISOString().slice(0, 10).replaceAll('-', '')}`)
    // There is no partition for tomorrow: the default partition already has a result of that day.
    assert.deepEqual(await listNames(), [...days, 'scans_default'].sort())
    const today = await record(digest, new Date(), null)
    assert.equal(await locate(today), days[0])
    assert.equal(await locate(await record(digest, ago(-1), null)), 'scans_default')
    assert.equal(await locate(await record(digest, ago(-400), null)), 'scans_default')
  })

  test('are dropped whole when all results are old; later, waiting and younger results stay', async () => {
    const { id: accountId, digest } = await stores.register({ credits: 100 })
    const [over, late, busy, young] = [ago(50), ago(48), ago(46), ago(20)]
    const names = await Promise.all([over, late, busy, young].map(makeDay))
    await record(digest, over, over)
    // A scan without a job that was never completed must not keep its partition for ever.
    await record(digest, over, null)
    const lateId = await record(digest, late, ago(10))
    const youngId = await record(digest, young, young)
    const job: NewJob = { queue: testQueue, source: { at: 'url', url: 'https://a.test/' }, callbackUrl: null }
    const scan = newTestScan({ id: newIdAt(busy), createdAt: busy, mode: 'async' })
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan, job })

    assert.ok((await stores.scans.deleteCompleted(30)) > 0)
    const left = await listNames()
    assert.deepEqual(
      names.map((name) => left.includes(name)),
      [false, true, true, true],
    )
    assert.ok((await stores.scans.findScan(accountId, 'malware', lateId)) !== undefined)
    assert.ok((await stores.scans.findScan(accountId, 'malware', youngId)) !== undefined)

    const [claimed] = await stores.jobs.claim(1, 30_000)
    assert.ok(claimed !== undefined && (await stores.jobs.complete(claimed.lease, toFailure(claimed))))
    assert.equal((await stores.scans.findScan(accountId, 'malware', scan.id))?.status, 'error')
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('do not delay requests while a long reader holds a table; old ones are dropped later', async () => {
    const name = await makeDay(ago(60))
    const reader = await stores.pool.connect()
    try {
      await reader.query('begin')
      await reader.query('select count(*) from scans')
      const { digest } = await stores.register()
      const [deleted] = await Promise.all([stores.scans.deleteCompleted(30), record(digest, new Date(), null)])
      assert.equal(deleted, 0)
      assert.ok((await listNames()).includes(name))
      await reader.query('commit')
      await stores.scans.deleteCompleted(30)
      assert.ok(!(await listNames()).includes(name))
    } finally {
      reader.release()
    }
  })

  test('are summed up while jobs complete, without a time limit, and then dropped', async () => {
    const { id, digest } = await stores.register({ credits: 10 })
    const name = await makeDay(ago(64))
    await record(digest, ago(64), ago(64))
    await stores.submit(digest)
    const [job] = await stores.jobs.claim(1, 30_000)
    assert.ok(job !== undefined)
    const folds = await holdUpFolds(stores)
    try {
      const dropping = stores.scans.deleteCompleted(30)
      await folds.hasBegun()
      const completing = stores.jobs.complete(job.lease, toCompletion(job))
      let isBlocked = false
      for (let isDone = false; !isDone && !isBlocked; ) {
        isBlocked = await isWaiting(stores, 'Lock')
        isDone = await Promise.race([completing, wait(5, false)])
      }
      await folds.end()
      await dropping
      assert.deepEqual([isBlocked, await completing], [false, true])
      assert.ok(!(await listNames()).includes(name))
      assert.deepEqual(await folds.listSettings(), [{ is_held: false, statement_timeout: '0', enable_seqscan: 'on' }])
      assert.deepEqual(await stores.getBalance(id), { remaining: 8, ledger: 8, debits: 1, scans: 1 })
    } finally {
      await folds.end()
      await folds.remove()
    }
  })

  test('stay when a scan is charged in them while they are summed up; no debit is lost', async () => {
    const { id, digest } = await stores.register({ credits: 10 })
    const name = await makeDay(ago(66))
    for (let n = 0; n < 2; n++) await record(digest, ago(66), ago(66))
    const folds = await holdUpFolds(stores)
    const getLate = async () => (await stores.pool.query('select partition from late_scans')).rows
    try {
      const dropping = stores.scans.deleteCompleted(30)
      await folds.hasBegun()
      await record(digest, ago(66), ago(66))
      assert.deepEqual(await getLate(), [{ partition: name }])
      await folds.end()
      await dropping
      assert.ok((await listNames()).includes(name))
      assert.deepEqual(await stores.getBalance(id), { remaining: 7, ledger: 7, debits: 3, scans: 3 })
    } finally {
      await folds.end()
      await folds.remove()
    }
    await stores.scans.deleteCompleted(30)
    assert.ok(!(await listNames()).includes(name))
    assert.deepEqual(await stores.getBalance(id), { remaining: 7, ledger: 7, debits: 0, scans: 0 })
    assert.deepEqual(await getLate(), [])
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('stay as they are when the sweep is cut off while it sums up, and are then summed up once', async () => {
    const { id, digest } = await stores.register({ credits: 10 })
    const name = await makeDay(ago(68))
    await record(digest, ago(68), ago(68))
    const folds = await holdUpFolds(stores)
    try {
      const dropping = assert.rejects(stores.scans.deleteCompleted(30))
      await folds.hasBegun()
      await stores.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and wait_event = 'PgSleep'`,
      )
      await dropping
      assert.ok((await listNames()).includes(name))
      assert.deepEqual(await stores.getBalance(id), { remaining: 9, ledger: 9, debits: 1, scans: 1 })
    } finally {
      await folds.end()
      await folds.remove()
    }
    await stores.scans.deleteCompleted(30)
    assert.ok(!(await listNames()).includes(name))
    assert.deepEqual(await stores.getBalance(id), { remaining: 9, ledger: 9, debits: 0, scans: 0 })
  })

  test('of the default kind lose their old results in pieces', async () => {
    const { id: accountId, digest } = await stores.register()
    const kept = await record(digest, ago(100), ago(1))
    // No partition has ids that begin with f.
    await stores.pool.query(
      `insert into scans (id, account_id, kind, mode, region, status, content_length, content_type, created_at, completed_at, signals)
       select ('f' || substr(gen_random_uuid()::text, 2))::uuid, $1, 'malware', 'sync', 'test', 'clean', 1, 'text/plain', '2019-01-01', '2019-01-01', '{}'
       from generate_series(1, 12001)`,
      [accountId],
    )
    assert.ok((await stores.scans.deleteCompleted(30)) >= 12_001)
    assert.equal(await stores.count('scans', accountId), 1)
    assert.equal(await locate(kept), 'scans_default')
  })

  test('are opened only where a statement needs them', async (t) => {
    for (let day = 1; day <= 40; day++) await makeDay(ago(200 + day))
    const id = newIdAt(ago(210))
    const client = await stores.pool.connect()
    /** Lines of the generic plan that scan a partition when the statement runs with these values. */
    const listOpened = async (statement: string, types: string, values: string) => {
      await client.query(`prepare looked_at (${types}) as ${statement}`)
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain execute looked_at (${values})`)
      await client.query('deallocate looked_at')
      return rows.map((row) => row['QUERY PLAN']).filter((line) => /Scan.* on scans_/.test(line))
    }
    try {
      const completed = await listOpened(completeStatement, 'text, uuid, uuid', `'[]', '${id}', '${id}'`)
      const found = await listOpened(findScansStatement, 'uuid[], uuid, uuid', `'{${id}}', '${id}', '${id}'`)
      const charged = await listOpened(
        admissionStatements.countAndCharge.byKey,
        'text[], integer[], text, uuid, uuid',
        `'{}', '{}', '[]', '${id}', '${id}'`,
      )
      const queued = await listOpened(
        admissionStatements.countAndEnqueue.byKey,
        'text[], integer[], text, uuid, uuid, bytea',
        `'{}', '{}', '[]', '${id}', '${id}', ''`,
      )
      t.diagnostic(
        `${completed.length} to complete, ${found.length} to find, ${charged.length} and ${queued.length} to charge`,
      )
      assert.deepEqual([completed.length, found.length, charged.length, queued.length], [1, 1, 1, 1])
    } finally {
      client.release()
    }
  })
})
