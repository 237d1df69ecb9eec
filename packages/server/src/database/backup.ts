import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Pool, PoolClient } from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { findRow, inTransaction, listRows, runCopy, runLongStatement, withoutTimeouts } from './query.ts'

export type TableShape = { name: string; columns: string[] }

/**
 * Reads the rows of every table as they were at one moment, while the service goes on changing them. Every commit that
 * was acknowledged before `takenAt`, by the clock of the database, is in them. `save` must read each stream to its end
 * before it resolves.
 */
export async function dumpTables<Saved>(
  pool: Pool,
  save: (table: TableShape, rows: Readable) => Promise<Saved>,
): Promise<{ takenAt: Date; tables: (TableShape & Saved)[] }> {
  return inTransaction(
    pool,
    async (client) => {
      // The time of `begin`. The snapshot is taken by the first query, which is this one, so never before that time.
      const begun = await findRow<{ takenAt: Date }>(client, 'select now() as "takenAt"')
      const tables = []
      for (const table of await listTables(client)) {
        const rows = copyTo(`copy (select ${toColumnList(table.columns)} from "${table.name}") to stdout`)
        tables.push({ ...table, ...(await runCopy(client, rows, () => save(table, rows))) })
      }
      return { takenAt: begun?.takenAt ?? new Date(0), tables }
    },
    { mode: 'isolation level repeatable read, read only', settings: withoutTimeouts, copies: true },
  )
}

/** Replaces the rows of all tables by those that `open` yields for each. All tables are loaded, or nothing changes. */
export async function loadTables(pool: Pool, tables: TableShape[], open: (table: TableShape) => Readable) {
  const load = async (client: PoolClient) => {
    const schemaTables = await listTables(client)
    // The triggers of the audit log then accept its rows as they are.
    await client.query(`set local assay.restoring = 'on'`)
    // A new database already has the three initial plans.
    await runLongStatement(client, `truncate ${schemaTables.map(({ name }) => `"${name}"`).join(', ')}`)
    // Tables are loaded in the order of this schema; the backup is in the order of its own.
    for (const { name } of schemaTables) {
      const table = tables.find((other) => other.name === name)
      if (table === undefined) continue
      const rows = copyFrom(`copy "${name}" (${toColumnList(table.columns)}) from stdin`)
      await runCopy(client, rows, () => pipeline(open(table), rows))
      await moveSequences(client, name)
    }
    // Charged scans have numbers of the ledger too. No index has these numbers, so all scans are read.
    await runLongStatement(
      client,
      `select setval('credit_ledger_id_seq', greatest(1, (select coalesce(max(id), 0) from credit_ledger) + 1,
         (select coalesce(max(ledger_id), 0) from scans) + 1), false)`,
    )
    await releaseLeases(client)
  }
  await inTransaction(pool, load, { settings: withoutTimeouts, copies: true })
}

export async function countAccounts(pool: Pool): Promise<number> {
  return Number((await findRow<{ count: string }>(pool, 'select count(*) from accounts'))?.count)
}

/**
 * All tables, each after the tables that it references, so that they can be loaded in this order. Skips unlogged
 * tables.
 */
async function listTables(client: PoolClient): Promise<TableShape[]> {
  const remaining = await listRows<TableShape & { references: string[] }>(
    client,
    `select c.relname as name,
       (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
       array(select r.relname::text from pg_constraint f join pg_class r on r.oid = f.confrelid
        where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as "references"
     from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relpersistence = 'p' and c.relname <> 'migrations'
     order by c.relname`,
  )
  const sorted: TableShape[] = []
  while (remaining.length > 0) {
    const next = remaining.findIndex(({ references }) =>
      references.every((name) => sorted.some((table) => table.name === name)),
    )
    if (next === -1) throw new Error(`Tables reference each other: ${remaining.map(({ name }) => name).join(', ')}`)
    for (const { name, columns } of remaining.splice(next, 1)) sorted.push({ name, columns })
  }
  return sorted
}

const toColumnList = (columns: string[]) => columns.map((column) => `"${column}"`).join(', ')

/** Moves identity columns beyond the loaded rows, so that new rows get new numbers. */
async function moveSequences(client: PoolClient, table: string) {
  const identities = await listRows<{ column: string }>(
    client,
    `select attname as column from pg_attribute where attrelid = $1::regclass and attidentity <> '' and attnum > 0`,
    [table],
  )
  for (const { column } of identities) {
    await runLongStatement(
      client,
      `select setval(pg_get_serial_sequence($1, $2), greatest(1, coalesce(max("${column}"), 0) + 1), false)
       from "${table}"`,
      [table, column],
    )
  }
}

/** Releases all leases: their holders worked on the database that was backed up. */
async function releaseLeases(client: PoolClient) {
  await runLongStatement(client, 'update jobs set lease_token = null, held_until = now() where lease_token is not null')
  await runLongStatement(
    client,
    'update deliveries set lease_token = null, next_at = now() where lease_token is not null',
  )
}
