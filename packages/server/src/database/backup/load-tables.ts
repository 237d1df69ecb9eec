import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { listTables, type TableShape, toColumnList } from './list-tables.ts'

export const countAccounts = async (pool: pg.Pool): Promise<number> => {
  const { rows } = await pool.query<{ count: string }>('select count(*) as count from accounts')
  return Number(rows[0]?.count)
}

/** Fills the tables with the rows that `open` gives for each: all of them, or nothing is changed. */
export async function loadTables(
  pool: pg.Pool,
  tables: TableShape[],
  open: (table: TableShape) => Readable,
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('set local statement_timeout = 0')
    const ours = await listTables(client)
    // A new database has plans of its own.
    await client.query(`truncate ${ours.map(({ name }) => `"${name}"`).join(', ')}`)
    // In our order: that of the backup was right for its own schema.
    for (const { name } of ours) {
      const table = tables.find((one) => one.name === name)
      if (table === undefined) continue
      await pipeline(open(table), client.query(copyFrom(`copy "${name}" (${toColumnList(table.columns)}) from stdin`)))
      await moveSequences(client, name)
    }
    await releaseLeases(client)
    await client.query('commit')
    client.release()
  } catch (error) {
    client.release(true)
    throw error
  }
}

/** The next number given out comes after all that were loaded. */
async function moveSequences(client: pg.PoolClient, table: string) {
  const { rows } = await client.query<{ column: string }>(
    `select attname as column from pg_attribute where attrelid = $1::regclass and attidentity <> '' and attnum > 0`,
    [table],
  )
  for (const { column } of rows) {
    await client.query(
      `select setval(pg_get_serial_sequence($1, $2), greatest(1, coalesce(max("${column}"), 0) + 1), false) from "${table}"`,
      [table, column],
    )
  }
}

/** Whoever was at work when the rows were saved is not here. */
async function releaseLeases(client: pg.PoolClient) {
  await client.query('update jobs set lease_token = null, held_until = now() where lease_token is not null')
  await client.query('update deliveries set lease_token = null, next_at = now() where lease_token is not null')
}
