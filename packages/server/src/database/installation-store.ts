import type { Pool } from 'pg'
import { hasAccounts, lockAccounts } from './account-store.ts'
import { changeRows, findRow, inTransaction, type Queryable } from './query.ts'

/**
 * Records whether this is a test installation, and returns what was recorded. The first service that starts decides,
 * and nothing changes it later. A database that has accounts by then is not a test installation.
 */
export async function claimInstallation({ pool }: { pool: Pool }, { isTest }: { isTest: boolean }): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    await lockAccounts(client)
    const recorded = await findInstallation(client)
    if (recorded !== undefined) return recorded.isTest
    const decided = isTest && !(await hasAccounts(client))
    await changeRows(client, 'insert into installation (is_test) values ($1)', [decided])
    return decided
  })
}

export const isTestInstallation = async ({ pool }: { pool: Pool }): Promise<boolean> =>
  (await findInstallation(pool))?.isTest === true

const findInstallation = (db: Queryable) =>
  findRow<{ isTest: boolean }>(db, 'select is_test as "isTest" from installation')
