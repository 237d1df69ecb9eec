import type pg from 'pg'

/**
 * Describes the schema from the catalog: tables, constraints and indexes in a fixed order. Partitions are left
 * out, because they come and go.
 */
export async function describeSchema(pool: pg.Pool): Promise<string> {
  const tables = await pool.query<{ name: string; kind: string; options: string[] | null; key: string | null }>(
    `select relname as name, case relpersistence when 'u' then 'unlogged table' else 'table' end as kind,
       reloptions as options, pg_get_partkeydef(oid) as key from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname <> 'migrations' order by relname`,
  )
  const parts: string[] = ['-- Made by `npm run schema` from the migrations; a test keeps it true. Do not edit.']
  for (const { name, kind, options, key } of tables.rows) {
    const lines = [...(await listColumns(pool, name)), ...(await listConstraints(pool, name))]
    const storage = options === null ? '' : ` with (${options.join(', ').replaceAll('=', ' = ')})`
    const partitioning = key === null ? '' : ` partition by ${key.toLowerCase()}`
    parts.push(`create ${kind} ${name} (\n${lines.map((line) => `  ${line}`).join(',\n')}\n)${partitioning}${storage};`)
    const indexes = await listIndexes(pool, name)
    if (indexes.length > 0) parts.push(indexes.join('\n'))
  }
  return `${parts.join('\n\n')}\n`
}

async function listColumns(pool: pg.Pool, table: string): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(
    `select concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
       case when a.attnotnull then 'not null' end,
       case a.attidentity when 'a' then 'generated always as identity' end,
       'default ' || pg_get_expr(d.adbin, d.adrelid)) as line
     from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [table],
  )
  return rows.map(({ line }) => line)
}

/** Leaves out `not null`, which only PostgreSQL 18 lists as a constraint and the columns state already. */
async function listConstraints(pool: pg.Pool, table: string): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(
    `select format('constraint %I %s', conname, pg_get_constraintdef(oid)) as line from pg_constraint
     where conrelid = $1::regclass and contype <> 'n' order by contype desc, conname`,
    [table],
  )
  return rows.map(({ line }) => line)
}

async function listIndexes(pool: pg.Pool, table: string): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(
    `select pg_get_indexdef(indexrelid) || ';' as line from pg_index
     where indrelid = $1::regclass and not exists (select from pg_constraint where conindid = indexrelid) order by 1`,
    [table],
  )
  return rows.map(({ line }) => line)
}
