import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { v7 } from 'uuid'
import { admissionStatements } from '../../src/database/admission-statements.ts'
import { completeStatement, findScansStatement } from '../../src/database/job-statements.ts'
import { findGaps, toPartition, toScanIdAt } from '../../src/database/scan-partitions.ts'
import type { NewJob } from '../../src/domain/ports/job-store.ts'
import type { NewScan } from '../../src/domain/scans/scan.ts'
import { newTestScan } from '../support/test-stores.ts'
import { openTestJobs, type TestJobs, testQueue, toCompletion, toFailure } from './test-jobs.ts'

const dayMs = 86_400_000
const ago = (days: number) => new Date(Date.now() - days * dayMs)
const newIdAt = (time: Date) => v7({ msecs: time.getTime() })

/** Creates the partition of a past day, as a node would have done on that day. */
async function makeDayIn({ pool }: TestJobs, time: Date): Promise<string> {
  const from = new Date(Math.floor(time.getTime() / dayMs) * dayMs)
  const name = `scans_${from.toISOString().slice(0, 10).replaceAll('-', '')}`
  const bounds = [from, new Date(from.getTime() + dayMs)].map((end) => `('${toScanIdAt(end)}')`)
  await pool.query(`create table ${name} partition of scans for values from ${bounds[0]} to ${bounds[1]}`)
  return name
}

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

describe('the ledger', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  after(() => stores.close())

  const charge = async (digest: string, at: Date, job?: NewJob) => {
    const result: Partial<NewScan> =
      job === undefined ? { status: 'clean', signals: [], completedAt: at } : { mode: 'async' }
    const scan = newTestScan({ id: newIdAt(at), createdAt: at, ...result })
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan, ...(job === undefined ? {} : { job }) })
    return scan.id
  }

  test('keeps old debits by day, and still sums to the balance', async () => {
    const { id, digest } = await stores.register({ credits: 100 })
    const { id: other, digest: otherDigest } = await stores.register({ credits: 100 })
    const [first, second] = [new Date('2026-01-05T03:00:00Z'), new Date('2026-01-06T23:59:00Z')]
    // One day has a partition, and the scans of the other one lie in the default partition.
    await makeDayIn(stores, first)
    for (const at of [first, first, second]) await charge(digest, at)
    await charge(otherDigest, first)
    const recent = await charge(digest, new Date())
    await stores.scans.deleteCompleted(30)
    assert.equal(await stores.count('scans', id), 1)
    const list = async (account: string) =>
      (await stores.accounts.listLedger(account, 100)).map(({ kind, amount, balance, note, scanId, at }) => [
        kind,
        amount,
        balance,
        note,
        scanId,
        kind === 'opening' || scanId !== null ? undefined : at.toISOString(),
      ])
    assert.deepEqual(await list(id), [
      ['debit', -1, 96, null, recent, undefined],
      ['debit', -1, 97, '1 scans', null, '2026-01-06T00:00:00.000Z'],
      ['debit', -2, 98, '2 scans', null, '2026-01-05T00:00:00.000Z'],
      ['opening', 100, 100, null, null, undefined],
    ])
    assert.equal((await list(other)).length, 2)

    await charge(digest, new Date('2026-01-05T20:00:00Z'))
    assert.equal(await stores.scans.deleteCompleted(30), 1)
    assert.equal(await stores.scans.deleteCompleted(30), 0)
    assert.deepEqual(
      (await list(id)).filter(([, amount]) => amount === -3),
      [['debit', -3, 95, '3 scans', null, '2026-01-05T00:00:00.000Z']],
    )
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('keeps the number and the balance of the last debit of a day, in whichever order its scans are deleted', async () => {
    const { id, digest } = await stores.register({ credits: 10 })
    const at = new Date('2026-01-08T03:00:00Z')
    const ids = [await charge(digest, at), await charge(digest, at), await charge(digest, at)]
    const { rows } = await stores.pool.query<{ last: string }>(
      'select max(ledger_id) as last from scans where account_id = $1',
      [id],
    )
    // A result that was completed later is deleted later.
    for (const kept of [[0, 2], [0], []]) {
      const ages = ids.map((_, n) => (kept.includes(n) ? 1 : 100))
      await stores.pool.query(
        `update scans set completed_at = now() - age * interval '1 day'
         from unnest($1::uuid[], $2::integer[]) as change (scan_id, age) where scans.id = scan_id`,
        [ids, ages],
      )
      await stores.scans.deleteCompleted(30)
    }
    const [entry] = await stores.accounts.listLedger(id, 1)
    assert.deepEqual([String(entry?.id), entry?.amount, entry?.balance, entry?.note], [rows[0]?.last, -3, 7, '3 scans'])
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('keeps the debit of a job that can still be refunded, and then refunds it once', async () => {
    const { id, digest } = await stores.register({ credits: 10 })
    const job: NewJob = { queue: testQueue, source: { at: 'url', url: 'https://a.test/' }, callbackUrl: null }
    const scanId = await charge(digest, ago(90), job)
    assert.equal(await stores.scans.deleteCompleted(30), 0)
    const [claimed] = await stores.jobs.claim(1, 30_000)
    assert.ok(claimed?.lease.scanId === scanId)
    assert.equal(await stores.jobs.complete(claimed.lease, toFailure(claimed)), true)
    assert.equal(await stores.jobs.complete(claimed.lease, toFailure(claimed)), false)
    await stores.pool.query('update scans set completed_at = created_at where id = $1', [scanId])
    await stores.pool.query(`update credit_ledger set at = at - interval '90 days' where scan_id = $1`, [scanId])
    assert.equal(await stores.scans.deleteCompleted(30), 1)
    assert.equal(await stores.scans.foldLedger(30), 1)
    assert.equal((await stores.getBalance(id))?.ledger, 10)
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })

  test('is folded in pieces, by nodes that do not know of each other', async () => {
    const { id } = await stores.register({ credits: 20_000 })
    await stores.pool.query(
      `with made as (
         insert into credit_ledger (account_id, kind, amount, balance, scan_id, at)
         select $1, 'refund', 1, 20000 + n, (lpad(to_hex(1700000000000 + n), 12, '0') || repeat('0', 20))::uuid,
           to_timestamp(1700000000 + n / 1000.0)
         from generate_series(1, 12001) as n returning 1
       )
       update balances set credit_limit = 20000 + 12001, credit_remaining = 20000 + 12001 where account_id = $1`,
      [id],
    )
    const folded = await Promise.all(Array.from({ length: 3 }, () => stores.scans.foldLedger(30)))
    assert.equal(
      folded.reduce((sum, n) => sum + n),
      12_001,
    )
    assert.equal((await stores.accounts.listLedger(id, 10)).length, 2)
    assert.deepEqual(await stores.accounts.listUnbalanced(), [])
  })
})
