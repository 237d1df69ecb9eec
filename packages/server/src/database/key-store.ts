import type { Pool } from 'pg'
import type { ApiKey } from '../domain/accounts/account.ts'
import { parseRestrictions, toRestrictionsText } from '../domain/accounts/keys.ts'
import { consoleKeyPrefix } from '../domain/console/authentication.ts'
import type { ConsoleKeyStore, KeyStore, NewApiKey } from '../domain/ports/account-store.ts'
import { changeRows, findRow, inTransaction, listRows, type Queryable } from './query.ts'

export function makeKeyStore({ pool }: { pool: Pool }): KeyStore & ConsoleKeyStore {
  return {
    async createKey(accountId, key, { replacesId } = {}) {
      const limit = await inTransaction(pool, async (client) => {
        const found = await findFullPlan(client, accountId, replacesId)
        if (found === undefined) await insertKey(client, accountId, key)
        return found
      })
      if (limit !== undefined) return { outcome: 'too-many', maxKeys: limit.maxKeys }
      const created = await findRow<KeyRow>(pool, `${selectKeys} where api_keys.id = $1`, [key.id])
      if (created === undefined) throw new Error(`API key ${key.id} vanished while it was being created`)
      return toApiKey(created)
    },

    async listKeys(accountId) {
      const where = 'where $1::uuid is null or account_id = $1 order by api_keys.created_at, api_keys.id'
      return (await listRows<KeyRow>(pool, `${selectKeys} ${where}`, [accountId])).map(toApiKey)
    },

    createConsoleKey: (accountId, key) => insertKey(pool, accountId, key),

    async findConsoleDigest(accountId) {
      const row = await findRow<{ digest: string }>(
        pool,
        `select encode(digest, 'hex') as digest from api_keys
         where account_id = $1 and prefix = $2 and revoked_at is null order by created_at limit 1`,
        [accountId, consoleKeyPrefix],
      )
      return row?.digest
    },

    async expireKey(accountId, id, afterMs) {
      const updated = await changeRows(
        pool,
        `update api_keys set expires_at = least(expires_at, now() + $3::float8 * interval '1 millisecond')
         where account_id = $1 and id = $2 and revoked_at is null`,
        [accountId, id, afterMs],
      )
      return updated > 0
    },

    async restrictKey(id, restrictions) {
      const stored = toRestrictionsText(restrictions)
      const changed = await changeRows(pool, 'update api_keys set restrictions = $2 where id = $1', [id, stored])
      return changed > 0 ? parseRestrictions(stored) : undefined
    },

    async revokeKey(id) {
      const text = 'update api_keys set revoked_at = coalesce(revoked_at, now()) where id = $1'
      return (await changeRows(pool, text, [id])) > 0
    },
  }
}

/**
 * Finds the limit of the plan if the account has reached it. The lock makes simultaneous calls count one after the
 * other.
 */
async function findFullPlan(client: Queryable, accountId: string, replacesId: string | undefined) {
  await client.query('select from accounts where id = $1 for no key update', [accountId])
  return findRow<{ maxKeys: number }>(
    client,
    `select max_keys as "maxKeys" from accounts join plans on plans.name = plan
     where accounts.id = $1 and max_keys <= (
       select count(*) from api_keys
       where account_id = $1 and prefix <> $3 and revoked_at is null and (expires_at is null or expires_at > now())
         and id is distinct from $2
     )`,
    [accountId, replacesId ?? null, consoleKeyPrefix],
  )
}

/** Creates a key and its rate window, which never exist without each other. */
export async function insertKey(db: Queryable, accountId: string, key: NewApiKey): Promise<void> {
  await changeRows(
    db,
    `with key as (
       insert into api_keys (id, account_id, name, prefix, digest, expires_at, is_test, restrictions, created_by)
       values ($1, $2, $3, $4, decode($5, 'hex'), $6, $7, $8, $9) returning id
     )
     insert into rate_windows (key_id) select id from key`,
    [
      key.id,
      accountId,
      key.name,
      key.prefix,
      key.digest,
      key.expiresAt,
      key.isTest,
      toRestrictionsText(key.restrictions),
      key.createdBy,
    ],
  )
}

type KeyRow = Omit<ApiKey, 'restrictions'> & { restrictions: string }

const toApiKey = (row: KeyRow): ApiKey => ({ ...row, restrictions: parseRestrictions(row.restrictions) })

const selectKeys = `
select id, account_id as "accountId", name, prefix, is_test as "isTest", restrictions, created_at as "createdAt",
  last_used_at as "lastUsedAt", expires_at as "expiresAt", coalesce(expires_at <= now(), false) as "isExpired",
  revoked_at as "revokedAt", created_by as "createdBy"
from api_keys left join rate_windows on key_id = id
`
