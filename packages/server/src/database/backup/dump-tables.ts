import type { Readable } from 'node:stream'
import type pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { listTables, type TableShape, toColumnList } from './list-tables.ts'

/**
 * Hands out the rows of every table as they were at one moment, while others go on changing them. `save` reads each stream
 * to its end before it resolves.
 */
export async function dumpTables<Saved>(
  pool: pg.Pool,
  save: (table: TableShape, rows: Readable) => Promise<Saved>,
): Promise<(TableShape & Saved)[]> {
  const client = await pool.connect()
  try {
    await client.query('begin isolation level repeatable read, read only')
    // One table may take longer than any statement of the service.
    await client.query('set local statement_timeout = 0')
    const saved = []
    for (const table of await listTables(client)) {
      const statement = `copy (select ${toColumnList(table.columns)} from "${table.name}") to stdout`
      saved.push({ ...table, ...(await save(table, client.query(copyTo(statement)))) })
    }
    await client.query('commit')
    client.release()
    return saved
  } catch (error) {
    // In the middle of a copy it is of no use to anybody.
    client.release(true)
    throw error
  }
}
