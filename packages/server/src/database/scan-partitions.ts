import type { Pool, PoolClient } from 'pg'
import { foldDebits } from './balances.ts'
import { isLockTimeout } from './database-error.ts'
import { findRow, inTransaction, listRows, type Queryable, runInPieces, runLongStatement } from './query.ts'

/**
 * `from` is undefined for a partition that begins with the lowest id. The default partition has neither `from` nor
 * `to`. `estimatedRows` is the planner's estimate of the number of rows.
 */
type Partition = { name: string; from: Date | undefined; to: Date | undefined; estimatedRows: number }
type Span = { from: Date; to: Date }

const partitionLock = 52_115_007
/** Limit on waiting for a table lock, which holds up all later statements. The next sweep, a minute later, retries. */
const lockMs = 250
const dayMs = 86_400_000
/** How many partitions the results are spread over: a statement that looks for a result locks each of them. */
const partitionCount = 32
const spansAhead = 2
const deletePieceSize = 5000
/** SQL for the time from which on a result cannot have been completed yet. */
const farAhead = `now() + interval '1 day'`
/** SQL for the lowest id of a scan that is $1 days old. */
export const lowestId = `(lpad(to_hex((extract(epoch from now() - make_interval(days => $1)) * 1000)::bigint), 12, '0')
      || repeat('0', 20))::uuid`

/**
 * Scans are partitioned by the time that their ids begin with, so that old results are deleted by dropping a table. Any
 * node creates and drops partitions. The time is the database's, so that a node whose clock is wrong drops nothing.
 *
 * After the clock of the database was set back, results may have been completed in the future. A time more than a day
 * ahead keeps no result: the time in the id counts instead, or a few such results would keep their partition for as long
 * as the clock was ahead.
 */
export function makeScanPartitions({ pool }: { pool: Pool }) {
  return {
    /**
     * Creates the partitions of the next days. A result without a partition goes to the default one and stays there.
     */
    async createAhead(resultDays: number): Promise<void> {
      for (const gap of await findCurrentGaps(pool, resultDays)) {
        await withPartitionLock(pool, (client) => createPartition(client, resultDays, gap.from))
      }
    },

    /** Drops partitions in which all results are old. Returns an estimate of the number of results dropped. */
    async dropOld(resultDays: number): Promise<number> {
      let dropped = 0
      for (const partition of await listPartitions(pool)) {
        if (partition.to === undefined || !(await isExpired(pool, partition, resultDays))) continue
        const isWatched = await withPartitionLock(pool, (client) => watchPartition(client, partition, resultDays))
        if (isWatched !== true) continue
        dropped += (await withPartitionLock(pool, (client) => dropPartition(client, partition, resultDays))) ?? 0
      }
      return dropped
    },

    /** Deletes old results from partitions without a lower bound, which are never dropped. */
    async deleteOld(resultDays: number): Promise<number> {
      let deleted = 0
      for (const { name, from } of await listPartitions(pool)) {
        if (from === undefined) deleted += await deleteRows(pool, name, resultDays)
      }
      return deleted
    },
  }
}

/** The lowest id that a scan of that time can have. */
export function toScanIdAt(time: Date): string {
  const hex = time.getTime().toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

const toTime = (id: string | undefined) =>
  id === undefined ? undefined : new Date(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16))

/** Reads PostgreSQL's description: `FOR VALUES FROM ('...') TO ('...')`, `MINVALUE` without quotes, or `DEFAULT`. */
export function toPartition(row: { name: string; bound: string; estimatedRows: number }): Partition {
  const [, from, to] = /FROM \((?:'([^']+)'|MINVALUE)\) TO \('([^']+)'\)/.exec(row.bound) ?? []
  return { name: row.name, from: toTime(from), to: toTime(to), estimatedRows: row.estimatedRows }
}

/** Times from today on that no partition covers, in spans of a day, or longer where results are kept long. */
export function findGaps(now: Date, resultDays: number, existing: Partition[]): Span[] {
  const spanMs = Math.ceil(resultDays / partitionCount) * dayMs
  const last = now.getTime() + spansAhead * spanMs
  const coveredSpans = existing.flatMap(({ from, to }) =>
    to === undefined ? [] : [{ from: from?.getTime() ?? 0, to: to.getTime() }],
  )
  const gaps: Span[] = []
  for (let at = Math.floor(now.getTime() / dayMs) * dayMs; at <= last; ) {
    const covering = coveredSpans.find(({ from, to }) => from <= at && at < to)
    if (covering !== undefined) {
      at = covering.to
      continue
    }
    // Spans have fixed ends, so that every node makes the same ones.
    const end = (Math.floor(at / spanMs) + 1) * spanMs
    const to = Math.min(end, ...coveredSpans.map(({ from }) => from).filter((from) => from > at))
    gaps.push({ from: new Date(at), to: new Date(to) })
    at = to
  }
  return gaps
}

async function listPartitions(db: Queryable): Promise<Partition[]> {
  const rows = await listRows<{ name: string; bound: string; estimatedRows: number }>(
    db,
    `select relname as name, pg_get_expr(relpartbound, oid) as bound, greatest(reltuples, 1)::float8 as "estimatedRows"
     from pg_class
     where relispartition and oid in (select inhrelid from pg_inherits where inhparent = 'scans'::regclass)`,
  )
  return rows.map(toPartition)
}

async function findCurrentGaps(db: Queryable, resultDays: number): Promise<Span[]> {
  const row = await findRow<{ now: Date }>(db, 'select now()')
  return row === undefined ? [] : findGaps(row.now, resultDays, await listPartitions(db))
}

/** Runs `work` unless another node does the same or a table stays locked; then it returns undefined. */
async function withPartitionLock<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T | undefined> {
  try {
    return await inTransaction(
      pool,
      async (client) => {
        const text = 'select pg_try_advisory_xact_lock($1) as granted'
        const lock = await findRow<{ granted: boolean }>(client, text, [partitionLock])
        return lock?.granted === true ? await work(client) : undefined
      },
      { settings: [`lock_timeout = ${lockMs}`] },
    )
  } catch (error) {
    if (isLockTimeout(error) || error instanceof PartitionInUse) return undefined
    throw error
  }
}

/** Creates the table first and then attaches it: this locks the default partition briefly, and not the whole table. */
async function createPartition(client: PoolClient, resultDays: number, from: Date) {
  const gaps = await findCurrentGaps(client, resultDays)
  const gap = gaps.find((other) => other.from.getTime() === from.getTime())
  if (gap === undefined) return
  const [low, high] = [toScanIdAt(gap.from), toScanIdAt(gap.to)]
  // After a long stop, or with a wrong clock, the default partition holds rows of this span. They stay there.
  const text = 'select from scans_default where id >= $1 and id < $2 limit 1'
  if ((await findRow(client, text, [low, high])) !== undefined) return
  const name = `scans_${gap.from.toISOString().slice(0, 10).replaceAll('-', '')}`
  await client.query(`create table ${name} (like scans including all)`)
  await client.query(`alter table scans attach partition ${name} for values from ('${low}') to ('${high}')`)
}

/** Whether a partition is old enough, holds no result that was completed later, and has no scan with a job. */
async function isExpired(db: Queryable, { name, to, from }: Partition, resultDays: number): Promise<boolean> {
  const row = await findRow<{ expired: boolean }>(
    db,
    `select $2::timestamptz <= now() - make_interval(days => $1)
       and not exists (select from jobs where scan_id < $3 and ($4::uuid is null or scan_id >= $4))
       and not exists (
         select from ${name}
         where completed_at >= now() - make_interval(days => $1) and completed_at < ${farAhead}
       ) as expired`,
    [resultDays, to, to && toScanIdAt(to), from && toScanIdAt(from)],
  )
  return row?.expired === true
}

/** Rolls the transaction back: a partition that was old a moment ago is in use. */
class PartitionInUse extends Error {}

async function mayDrop(client: PoolClient, partition: Partition, resultDays: number): Promise<boolean> {
  const isThere = (await listPartitions(client)).some(({ name }) => name === partition.name)
  return isThere && (await isExpired(client, partition, resultDays))
}

/**
 * Adds a trigger that notes each scan that is added to the partition from now on. An old partition gets no scans unless
 * a clock is wrong, but nothing else tells that cheaply. The lock waits for all transactions that write to the partition
 * without the trigger. While a long transaction such as a backup keeps that lock away, no debits are summed up in vain.
 */
async function watchPartition(client: PoolClient, partition: Partition, resultDays: number): Promise<boolean> {
  if (!(await mayDrop(client, partition, resultDays))) return false
  await client.query(lockScans)
  await client.query(
    `create or replace trigger note_late_scan after insert on ${partition.name}
     for each row execute function note_late_scan()`,
  )
  return true
}

/**
 * Adds the debits of a watched partition to the ledger and drops it, in one transaction. Summing up takes seconds for
 * millions of rows. So it comes before the lock that holds up all requests, and takes no lock that they wait for: a
 * statement that completes jobs locks every partition for writing.
 *
 * If the number of late scans is the same behind the lock, no scan was added since. Then nothing else changed either,
 * because only a job changes its scan, and there were no jobs. So all debits were summed up.
 */
async function dropPartition(client: PoolClient, partition: Partition, resultDays: number): Promise<number> {
  const { name, estimatedRows } = partition
  const lateBefore = await countLateScans(client, name)
  if (!(await mayDrop(client, partition, resultDays))) return 0
  // Every row is read, so reading them in the order of an index would only take longer. The time grows with the rows.
  await client.query('set local enable_seqscan = on; set local statement_timeout = 0')
  await runLongStatement(client, foldDebits(name))
  await client.query(lockScans)
  if ((await countLateScans(client, name)) !== lateBefore) throw new PartitionInUse()
  await client.query(`drop table ${name}`)
  await client.query('delete from late_scans where partition = $1', [name])
  return estimatedRows
}

async function countLateScans(client: PoolClient, partition: string): Promise<number | undefined> {
  const text = 'select count(*)::integer as count from late_scans where partition = $1'
  return (await findRow<{ count: number }>(client, text, [partition]))?.count
}

const lockScans = 'lock table scans in access exclusive mode'

const deleteRows = (pool: Pool, name: string, resultDays: number): Promise<number> =>
  runInPieces(deletePieceSize, () => deletePiece(pool, name, resultDays))

async function deletePiece(pool: Pool, name: string, resultDays: number): Promise<number> {
  const row = await findRow<{ deleted: number }>(
    pool,
    `with deleted as (
       delete from ${name} where id in (
         select id from ${name}
         where completed_at < now() - make_interval(days => $1) or (completed_at >= ${farAhead} and id < ${lowestId})
         limit ${deletePieceSize}
       ) returning *
     ),
     folded as (${foldDebits('deleted')})
     select count(*)::integer as deleted from deleted`,
    [resultDays],
  )
  return row?.deleted ?? 0
}
