import { sql } from 'kysely'
import type { Database } from './open-database.ts'

/**
 * Whether this is a test installation: said by the first service that starts on it, and never changed. One that has
 * accounts before that is none. Nodes that start together look one after the other.
 */
export function claimInstallation({ kysely }: Pick<Database, 'kysely'>, { isTest }: { isTest: boolean }) {
  return kysely.transaction().execute(async (trx): Promise<boolean> => {
    await sql`lock table accounts in share row exclusive mode`.execute(trx)
    const known = await trx.selectFrom('installation').select('is_test').executeTakeFirst()
    if (known !== undefined) return known.is_test
    const account = await trx.selectFrom('accounts').select('id').limit(1).executeTakeFirst()
    const decided = isTest && account === undefined
    await trx.insertInto('installation').values({ is_test: decided }).execute()
    return decided
  })
}

export async function isTestInstallation({ kysely }: Pick<Database, 'kysely'>): Promise<boolean> {
  const known = await kysely.selectFrom('installation').select('is_test').executeTakeFirst()
  return known?.is_test === true
}
