import type { Pool } from 'pg'
import type { Binding, ReceiptKey, ReceiptKeyStore, Sealer } from '../domain/ports/secret-store.ts'
import { newReceiptKey } from '../domain/receipts.ts'
import { changeRows, findRow, inTransaction, listRows, type Queryable } from './query.ts'

/** The master key that a database belongs to, and the id of the installation, which outlives the key. */
export type RecordedKey = { id: string; installationId: string }

export const findRecordedKey = (db: Queryable): Promise<RecordedKey | undefined> =>
  findRow<RecordedKey>(db, 'select id, installation_id as "installationId" from master_key')

/** Records the key of the first process that needs one. Returns the recorded key, which may be that of another. */
export async function recordMasterKey(db: Queryable, id: string): Promise<RecordedKey> {
  await db.query('insert into master_key (id) values ($1) on conflict do nothing', [id])
  const recorded = await findRecordedKey(db)
  if (recorded === undefined) throw new Error('The master key was not recorded')
  return recorded
}

/** The keys of receipts. The private key of the current one is sealed in its row. */
export function makeReceiptKeyStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): ReceiptKeyStore {
  return {
    async getSigningKey() {
      const { id, sealed } = (await findCurrent(pool)) ?? (await createFirst())
      return { id, privateKey: await sealer.open(sealed, receiptKeyOf(id)) }
    },
    listKeys: () => listRows<ReceiptKey>(pool, listKeys),
    rotateKey: () =>
      inTransaction(pool, async (client) => {
        // Rotations wait for each other, so that each finds the key of the one before.
        await client.query('lock table receipt_keys in share row exclusive mode')
        await changeRows(client, 'update receipt_keys set sealed = null where sealed is not null')
        return addKey(client)
      }),
    withdrawKey: async (id) => (await changeRows(pool, 'delete from receipt_keys where id = $1', [id])) === 1,
  }

  /** Creates the first key, which one of several nodes does that need it at the same time. */
  async function createFirst() {
    await addKey(pool)
    const current = await findCurrent(pool)
    if (current === undefined) throw new Error('The key for receipts was not created')
    return current
  }

  async function addKey(db: Queryable): Promise<string> {
    const { id, publicKey, privateKey } = newReceiptKey()
    const sealed = await sealer.seal(privateKey, receiptKeyOf(id))
    const text = 'insert into receipt_keys (id, public_key, sealed) values ($1, $2, $3) on conflict do nothing'
    await changeRows(db, text, [id, publicKey, sealed])
    return id
  }
}

export const receiptKeyOf = (id: string): Binding => ['receipt_keys.sealed', id]

const findCurrent = (db: Queryable) =>
  findRow<{ id: string; sealed: Buffer }>(db, 'select id, sealed from receipt_keys where sealed is not null')

const listKeys = `
select id, public_key as "publicKey", created_at as "createdAt", sealed is not null as "isCurrent"
from receipt_keys order by sealed is null, created_at desc, id
`
