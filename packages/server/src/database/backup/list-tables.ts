import type { ClientBase } from 'pg'

export type TableShape = { name: string; columns: string[] }

/**
 * Every table that holds something of ours, those that others refer to first: in this order they can be filled. What is in
 * unlogged tables need not survive.
 */
export async function listTables(client: ClientBase): Promise<TableShape[]> {
  const { rows } = await client.query<TableShape & { refers_to: string[] }>(
    `select c.relname as name,
       (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
       array(select r.relname::text from pg_constraint f join pg_class r on r.oid = f.confrelid
        where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as refers_to
     from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relpersistence = 'p' and c.relname <> 'migrations'
     order by c.relname`,
  )
  const ordered: TableShape[] = []
  const waiting = [...rows]
  while (waiting.length > 0) {
    const next = waiting.findIndex(({ refers_to }) => refers_to.every((name) => ordered.some((t) => t.name === name)))
    if (next === -1) throw new Error(`Tables refer to each other: ${waiting.map(({ name }) => name).join(', ')}`)
    const [table] = waiting.splice(next, 1)
    if (table !== undefined) ordered.push({ name: table.name, columns: table.columns })
  }
  return ordered
}

export const toColumnList = (columns: string[]) => columns.map((column) => `"${column}"`).join(', ')
