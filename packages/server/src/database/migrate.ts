import type { Pool } from 'pg'
import type { Logger } from '../runtime/logger.ts'
import { createHistory, listDone, requireServed } from './migration-history.ts'
import { withMigrationLock } from './migration-lock.ts'
import { type Migration, readMigrations } from './read-migrations.ts'
import { runMigration } from './run-migration.ts'

type Deps = { pool: Pool; log: Logger }

/**
 * Brings the database up to this version, while others use it. Forward only: there is no way down. Nodes that start
 * together wait for each other, and one of them does the work. Returns the names of the migrations it ran. `last` stops
 * earlier, at the schema of an older version.
 */
export async function migrate(deps: Deps, last?: string): Promise<string[]> {
  const ours = readMigrations().filter(({ name }) => last === undefined || name <= last)
  if (last === undefined) await requireServed(deps, ours)
  if ((await listMissing(deps.pool, ours)).length === 0) return []
  return withMigrationLock(deps, async () => {
    await deps.pool.query(createHistory)
    const missing = await listMissing(deps.pool, ours)
    for (const [i, migration] of missing.entries()) {
      deps.log.info({ migration: migration.name, number: i + 1, of: missing.length }, 'migrating the database')
      await runMigration(deps, migration)
    }
    return missing.map(({ name }) => name)
  })
}

/** Migrations of this version that the database does not have yet. One that is too new for this version is refused. */
export async function listPendingMigrations(deps: Deps): Promise<string[]> {
  const ours = readMigrations()
  await requireServed(deps, ours)
  return (await listMissing(deps.pool, ours)).map(({ name }) => name)
}

/** Those of this version, in order. */
export const listMigrations = (): string[] => readMigrations().map(({ name }) => name)

export const listMigrationsDone = async (pool: Pool): Promise<string[]> =>
  (await listDone(pool)).map(({ name }) => name)

export const countMigrationsDone = async (pool: Pool): Promise<number> => (await listDone(pool)).length

async function listMissing(pool: Pool, ours: Migration[]): Promise<Migration[]> {
  const done = new Set((await listDone(pool)).map(({ name }) => name))
  return ours.filter(({ name }) => !done.has(name))
}
