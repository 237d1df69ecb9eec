import { readdirSync, readFileSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import { OperatorMistake } from '../domain/problem.ts'
import type { Tables } from './tables.ts'

const folder = new URL('./migrations/', import.meta.url)

/**
 * Brings the database up to this version. Forward only: there is no way down. Nodes that start together wait for each
 * other on the migrator's lock, and one of them does the work. Returns the names of the migrations it ran.
 */
export async function migrate(kysely: Kysely<Tables>): Promise<string[]> {
  await refuseNewerSchema(kysely)
  const migrator = new Migrator({ db: kysely, provider: { getMigrations: async () => readMigrations() } })
  const { error, results } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
  return (results ?? []).filter(({ status }) => status === 'Success').map(({ migrationName }) => migrationName)
}

/** Migrations of this version that the database does not have yet. */
export async function listPendingMigrations(kysely: Kysely<Tables>): Promise<string[]> {
  const done = new Set(await listDone(kysely))
  return Object.keys(readMigrations()).filter((name) => !done.has(name))
}

export const countMigrationsDone = async (kysely: Kysely<Tables>): Promise<number> => (await listDone(kysely)).length

function readMigrations() {
  const names = readdirSync(folder).filter((file) => file.endsWith('.sql'))
  return Object.fromEntries(
    names.sort().map((file) => {
      const text = readFileSync(new URL(file, folder), 'utf8')
      const up = async (db: Kysely<Tables>) => {
        await sql.raw(text).execute(db)
      }
      return [file.slice(0, -'.sql'.length), { up }]
    }),
  )
}

async function refuseNewerSchema(kysely: Kysely<Tables>) {
  const ours = new Set(Object.keys(readMigrations()))
  const foreign = (await listDone(kysely)).filter((name) => !ours.has(name))
  if (foreign.length > 0) {
    throw new OperatorMistake(
      `The database was migrated by a newer Assay (it has ${foreign.join(', ')}). Start that version, or a newer one.`,
    )
  }
}

async function listDone(kysely: Kysely<Tables>): Promise<string[]> {
  const { rows: tables } = await sql<{ there: boolean }>`
    select to_regclass('kysely_migration') is not null as there`.execute(kysely)
  if (tables[0]?.there !== true) return []
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(kysely)
  return rows.map(({ name }) => name)
}
