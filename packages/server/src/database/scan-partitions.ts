import type { Pool, PoolClient } from 'pg'
import { findGaps, type Partition, toPartition, toScanIdAt } from './partition-bounds.ts'

const partitionLock = 52_115_007
/** Whoever waits for a table makes everybody wait who comes later; a minute later is time enough. */
const lockMs = 250

/**
 * Results lie in partitions by the time their ids begin with, so that forgetting them is dropping a table. Any node makes
 * and drops them, whichever comes first. What the database calls now counts: a node whose clock is wrong drops nothing.
 */
export function makeScanPartitions(deps: { pool: Pool }) {
  return {
    /** Those of the next days. What has no partition goes to the default one, and stays there until it is old. */
    async makeAhead(resultDays: number): Promise<void> {
      const gaps = await findGapsNow(deps.pool, resultDays)
      for (const gap of gaps) await inTurn(deps.pool, (client) => makePartition(client, resultDays, gap.from))
    },

    /** Says about how many results went. */
    async dropOld(resultDays: number): Promise<number> {
      let dropped = 0
      for (const partition of await listPartitions(deps.pool)) {
        if (partition.to === undefined || !(await isOver(deps.pool, partition, resultDays))) continue
        dropped += (await inTurn(deps.pool, (client) => dropPartition(client, partition, resultDays))) ?? 0
      }
      return dropped
    },

    /** Of those that hold more than a partition of ours does: what had none, and what was there before. */
    async deleteOld(resultDays: number): Promise<number> {
      let deleted = 0
      for (const { name, from } of await listPartitions(deps.pool)) {
        if (from === undefined) deleted += await deleteRows(deps.pool, name, resultDays)
      }
      return deleted
    },
  }
}

async function listPartitions(db: Pool | PoolClient): Promise<Partition[]> {
  const { rows } = await db.query<{ name: string; bound: string; about: number }>(
    `select relname as name, pg_get_expr(relpartbound, oid) as bound, greatest(reltuples, 1)::float8 as about
     from pg_class where relispartition and oid in (select inhrelid from pg_inherits where inhparent = 'scans'::regclass)`,
  )
  return rows.map(toPartition)
}

async function findGapsNow(db: Pool | PoolClient, resultDays: number) {
  const { rows } = await db.query<{ now: Date }>('select now()')
  return findGaps(rows[0]?.now ?? new Date(), resultDays, await listPartitions(db))
}

/** Two nodes at once would make the same one. Undefined: somebody else is at it, or the table is in use for longer. */
async function inTurn<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T | undefined> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query(`begin; set local lock_timeout = ${lockMs}; set local enable_seqscan = off`)
    const { rows } = await client.query<{ ours: boolean }>('select pg_try_advisory_xact_lock($1) as ours', [
      partitionLock,
    ])
    const result = rows[0]?.ours === true ? await work(client) : undefined
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback').catch((reason: Error) => {
      broken = reason
    })
    if ((error as { code?: unknown }).code === lockNotAvailable) return undefined
    throw error
  } finally {
    client.release(broken)
  }
}

const lockNotAvailable = '55P03'

/** Made apart and then attached: that locks the default partition for a moment, and not the whole table. */
async function makePartition(client: PoolClient, resultDays: number, from: Date) {
  const gap = (await findGapsNow(client, resultDays)).find((other) => other.from.getTime() === from.getTime())
  if (gap === undefined) return
  const [low, high] = [toScanIdAt(gap.from), toScanIdAt(gap.to)]
  // After a long stop, or by a clock that was wrong: its rows are in the default partition, where they can stay.
  const { rows } = await client.query('select from scans_default where id >= $1 and id < $2 limit 1', [low, high])
  if (rows.length > 0) return
  const name = `scans_${gap.from.toISOString().slice(0, 10).replaceAll('-', '')}`
  await client.query(`create table ${name} (like scans including all)`)
  await client.query(`alter table scans attach partition ${name} for values from ('${low}') to ('${high}')`)
}

/** Old enough, nothing in it was completed later, and no job waits for an end. */
async function isOver(db: Pool | PoolClient, { name, to, from }: Partition, resultDays: number): Promise<boolean> {
  const { rows } = await db.query<{ over: boolean }>(
    `select $2::timestamptz <= now() - make_interval(days => $1)
       and not exists (select from jobs where scan_id < $3 and ($4::uuid is null or scan_id >= $4))
       and not exists (select from ${name} where completed_at >= now() - make_interval(days => $1)) as over`,
    [resultDays, to, to && toScanIdAt(to), from && toScanIdAt(from)],
  )
  return rows[0]?.over === true
}

async function dropPartition(client: PoolClient, partition: Partition, resultDays: number): Promise<number> {
  await client.query(`lock table scans in access exclusive mode`)
  const isThere = (await listPartitions(client)).some(({ name }) => name === partition.name)
  if (!isThere || !(await isOver(client, partition, resultDays))) return 0
  await client.query(`drop table ${partition.name}`)
  return partition.about
}

/** In pieces: one long statement would hold up the vacuum, and its own time limit could undo all of it. */
const deleteAtOnce = 5000

async function deleteRows(pool: Pool, name: string, resultDays: number): Promise<number> {
  let deleted = 0
  for (;;) {
    const { rowCount } = await pool.query(
      `delete from ${name} where id in (
         select id from ${name} where completed_at < now() - make_interval(days => $1) limit ${deleteAtOnce}
       )`,
      [resultDays],
    )
    deleted += rowCount ?? 0
    if ((rowCount ?? 0) < deleteAtOnce) return deleted
  }
}
