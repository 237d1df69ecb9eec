import { readdirSync, readFileSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { OperatorMistake } from '../domain/problem.ts'
import type { Tables } from './tables.ts'

const folder = new URL('./migrations/', import.meta.url)

/**
 * Brings the database up to this version. Forward only: there is no way down. Nodes that start together wait for each
 * other on the migrator's lock, and one of them does the work. Returns the names of the migrations it ran. `last` stops
 * earlier, at the schema of an older version.
 */
export async function migrate(kysely: Kysely<Tables>, last?: string): Promise<string[]> {
  await refuseNewerSchema(kysely)
  const migrator = new Migrator({ db: kysely, provider: { getMigrations: async () => readMigrations() } })
  const { error, results } = await (last === undefined ? migrator.migrateToLatest() : migrator.migrateTo(last))
  if (error !== undefined) throw error
  return (results ?? []).filter(({ status }) => status === 'Success').map(({ migrationName }) => migrationName)
}

/** Migrations of this version that the database does not have yet. */
export async function listPendingMigrations(kysely: Kysely<Tables>): Promise<string[]> {
  const done = new Set(await listMigrationsDone(kysely))
  return listMigrations().filter((name) => !done.has(name))
}

export const countMigrationsDone = async (kysely: Kysely<Tables>): Promise<number> =>
  (await listMigrationsDone(kysely)).length

function readMigrations() {
  return Object.fromEntries(
    listMigrations().map((name) => {
      const text = readFileSync(new URL(`${name}.sql`, folder), 'utf8')
      const up = async (db: Kysely<Tables>) => {
        await sql.raw(text).execute(db)
      }
      return [name, { up }]
    }),
  )
}

/** Those of this version, in order. */
export function listMigrations(): string[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'))
  return files.map((file) => file.slice(0, -'.sql'.length)).sort()
}

async function refuseNewerSchema(kysely: Kysely<Tables>) {
  const ours = new Set(listMigrations())
  const foreign = (await listMigrationsDone(kysely)).filter((name) => !ours.has(name))
  if (foreign.length > 0) {
    throw new OperatorMistake(
      `The database was migrated by a newer Assay (it has ${foreign.join(', ')}). Start that version, or a newer one.`,
    )
  }
}

export async function listMigrationsDone(kysely: Kysely<Tables>): Promise<string[]> {
  const { rows: tables } = await sql<{ there: boolean }>`
    select to_regclass('kysely_migration') is not null as there`.execute(kysely)
  if (tables[0]?.there !== true) return []
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(kysely)
  return rows.map(({ name }) => name)
}
