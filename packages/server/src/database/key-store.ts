import type { Kysely } from 'kysely'
import type { ApiKey } from '../domain/accounts/account.ts'
import { consoleKeyPrefix } from '../domain/console/console-keys.ts'
import type { ConsoleKeyStore, KeyStore } from '../domain/ports/key-store.ts'
import { insertKey } from './insert-key.ts'
import type { Database } from './open-database.ts'
import type { Tables } from './tables.ts'

export function makeKeyStore(deps: Pick<Database, 'kysely'>): KeyStore & ConsoleKeyStore {
  const { kysely } = deps

  return {
    async createKey(accountId, key) {
      await kysely.transaction().execute((trx) => insertKey(trx, accountId, key))
      return toApiKey(await selectKeys(kysely).where('api_keys.id', '=', key.id).executeTakeFirstOrThrow())
    },

    async listKeys(accountId) {
      const all = selectKeys(kysely).orderBy('api_keys.created_at').orderBy('api_keys.id')
      const rows = await (accountId === null ? all : all.where('api_keys.account_id', '=', accountId)).execute()
      return rows.map(toApiKey)
    },

    async findConsoleDigest(accountId) {
      const row = await kysely
        .selectFrom('api_keys')
        .select('digest')
        .where('account_id', '=', accountId)
        .where('prefix', '=', consoleKeyPrefix)
        .where('revoked_at', 'is', null)
        .orderBy('created_at')
        .limit(1)
        .executeTakeFirst()
      return row?.digest.toString('hex')
    },

    async expireKey(accountId, id, at) {
      const { numUpdatedRows } = await kysely
        .updateTable('api_keys')
        .set((eb) => ({ expires_at: eb.fn<Date>('least', ['expires_at', eb.val(at)]) }))
        .where('account_id', '=', accountId)
        .where('id', '=', id)
        .where('revoked_at', 'is', null)
        .executeTakeFirstOrThrow()
      return numUpdatedRows > 0n
    },

    async revokeKey(id) {
      const { numUpdatedRows } = await kysely
        .updateTable('api_keys')
        .set((eb) => ({ revoked_at: eb.fn.coalesce('revoked_at', eb.fn<Date>('now', [])) }))
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      return numUpdatedRows > 0n
    },
  }
}

function selectKeys(kysely: Kysely<Tables>) {
  return kysely
    .selectFrom('api_keys')
    .leftJoin('rate_windows', 'rate_windows.key_id', 'api_keys.id')
    .select(['api_keys.id', 'api_keys.account_id', 'api_keys.name', 'api_keys.prefix', 'api_keys.created_at'])
    .select(['api_keys.is_test', 'rate_windows.last_used_at', 'api_keys.expires_at', 'api_keys.revoked_at'])
}

type KeyRow = Awaited<ReturnType<ReturnType<typeof selectKeys>['executeTakeFirstOrThrow']>>

function toApiKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    prefix: row.prefix,
    isTest: row.is_test,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
  }
}
