import type { Pool } from 'pg'
import { OperatorMistake } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { type Migration, toNumber } from './read-migrations.ts'

type Done = { name: string; serves: string }

/**
 * Which migrations a database has. The first five were recorded in a table of kysely's. It is left as it was: the version
 * before this one looks there, and would refuse to start beside us if it found a migration that it does not know.
 */
export async function listDone(pool: Pool): Promise<Done[]> {
  const { rows: tables } = await pool.query<{ ours: boolean; before: boolean }>(
    `select to_regclass('migrations') is not null as ours, to_regclass('kysely_migration') is not null as before`,
  )
  const sources = [
    ...(tables[0]?.ours === true ? ['select name, serves from migrations'] : []),
    ...(tables[0]?.before === true ? ['select name, left(name, 4) as serves from kysely_migration'] : []),
  ]
  if (sources.length === 0) return []
  const { rows } =
    await pool.query<Done>(`select distinct on (name) name, serves from (${sources.join(' union all ')}) as d
    order by name, serves`)
  return rows
}

export const createHistory = `
create table if not exists migrations (
  name text primary key,
  -- The number of the last migration that a version must know to work with this one.
  serves text not null,
  ran_at timestamptz not null default now()
)`

export const recordMigration = 'insert into migrations (name, serves) values ($1, $2)'

/**
 * While nodes are upgraded one by one, those of the version before find a schema that is newer than they are. They work
 * with it as long as every migration says so.
 */
export async function requireServed(deps: { pool: Pool; log: Logger }, ours: Migration[]) {
  const known = new Set(ours.map(({ name }) => name))
  const newest = toNumber(ours.at(-1)?.name ?? '0000')
  const foreign = (await listDone(deps.pool)).filter(({ name }) => !known.has(name))
  if (foreign.length === 0) return
  const names = foreign.map(({ name }) => name)
  const refusing = foreign.filter(({ serves }) => serves > newest)
  if (refusing.length > 0) {
    throw new OperatorMistake(
      `The database was migrated by a newer Assay (it has ${names.join(', ')}). Start that version, or a newer one.`,
    )
  }
  deps.log.warn(
    { migrations: names },
    'the database is newer than this version and works with it; upgrade this one too',
  )
}
