import type { Kysely } from 'kysely'
import type { NewApiKey } from '../domain/ports/key-store.ts'
import type { Tables } from './tables.ts'

/** A key and its rate window, which are never without each other. */
export async function insertKey(db: Kysely<Tables>, accountId: string, key: NewApiKey) {
  await db
    .insertInto('api_keys')
    .values({
      id: key.id,
      account_id: accountId,
      name: key.name,
      prefix: key.prefix,
      digest: Buffer.from(key.digest, 'hex'),
      expires_at: key.expiresAt,
      is_test: key.isTest,
    })
    .execute()
  await db.insertInto('rate_windows').values({ key_id: key.id }).execute()
}
