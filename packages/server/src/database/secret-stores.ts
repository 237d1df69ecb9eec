import type { Pool } from 'pg'
import {
  type CredentialValues,
  maxCredentials,
  readTarget,
  showValues,
  toTargetText,
} from '../domain/downloads/target.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type {
  Binding,
  DownloadCredentialStore,
  ReceiptKey,
  ReceiptKeyStore,
  Sealer,
} from '../domain/ports/secret-store.ts'
import { newReceiptKey } from '../domain/receipts.ts'
import { changeRows, findRow, inTransaction, listRows, type Queryable } from './query.ts'

/** The master key that a database belongs to, and the id of the installation, which outlives the key. */
type RecordedKey = { id: string; installationId: string }

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
      const { id, sealed } = (await findSigningKey(pool)) ?? (await createFirst())
      return { id, privateKey: await sealer.open(sealed, receiptKeyOf(id)) }
    },
    listKeys: () => listRows<ReceiptKey>(pool, listReceiptKeys),
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
    const current = await findSigningKey(pool)
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

const findSigningKey = (db: Queryable) =>
  findRow<{ id: string; sealed: Buffer }>(db, 'select id, sealed from receipt_keys where sealed is not null')

const listReceiptKeys = `
select id, public_key as "publicKey", created_at as "createdAt", sealed is not null as "isCurrent"
from receipt_keys order by sealed is null, created_at desc, id
`

type WebhookSecrets = Pick<AccountStore, 'listWebhookSecrets' | 'findWebhookRotation' | 'rotateWebhookSecret'>

/** The webhook secrets of accounts, which are sealed in their rows. */
export function makeWebhookSecrets({ pool, sealer }: { pool: Pool; sealer: Sealer }): WebhookSecrets {
  return {
    async listWebhookSecrets(id) {
      const row = await findRow<SealedSecrets>(
        pool,
        `select webhook_secret as secret,
           case when previous_webhook_secret_until > now() then previous_webhook_secret end as "previousSecret"
         from accounts where id = $1`,
        [id],
      )
      return row === undefined ? [] : openWebhookSecrets(sealer, id, row)
    },

    async findWebhookRotation(id) {
      const row = await findRow<{ rotatedAt: Date | null; previousUntil: Date | null }>(
        pool,
        `select previous_webhook_secret_until - interval '1 day' as "rotatedAt",
           case when previous_webhook_secret_until > now() then previous_webhook_secret_until end as "previousUntil"
         from accounts where id = $1`,
        [id],
      )
      return row ?? { rotatedAt: null, previousUntil: null }
    },

    async rotateWebhookSecret(id, secret, previousMs) {
      const sealed = await sealer.seal(Buffer.from(secret), webhookSecretOf(id))
      return inTransaction(pool, async (client) => {
        const row = await findRow<{ secret: Buffer }>(
          client,
          'select webhook_secret as secret from accounts where id = $1 for update',
          [id],
        )
        if (row === undefined) return undefined
        // A sealed value opens in its own column only. A secret that does not open signs nothing, and is dropped.
        const current = await sealer.open(row.secret, webhookSecretOf(id)).catch(() => undefined)
        const previous = current && (await sealer.seal(current, previousWebhookSecretOf(id)))
        const rotated = await findRow<{ until: Date }>(
          client,
          `update accounts set webhook_secret = $2, previous_webhook_secret = $3,
             previous_webhook_secret_until = now() + $4::float8 * interval '1 millisecond'
           where id = $1 returning previous_webhook_secret_until as until`,
          [id, sealed, previous ?? null, previousMs],
        )
        return rotated?.until
      })
    },
  }
}

export const webhookSecretOf = (accountId: string): Binding => ['accounts.webhook_secret', accountId]
export const previousWebhookSecretOf = (accountId: string): Binding => ['accounts.previous_webhook_secret', accountId]

export type SealedSecrets = { secret: Buffer; previousSecret: Buffer | null }

/** The current secret of an account and, if there is one, the previous one. Throws when one is not of this account. */
export async function openWebhookSecrets(sealer: Sealer, accountId: string, { secret, previousSecret }: SealedSecrets) {
  const opened = [await sealer.open(secret, webhookSecretOf(accountId))]
  if (previousSecret !== null) opened.push(await sealer.open(previousSecret, previousWebhookSecretOf(accountId)))
  return opened.map(String)
}

type CredentialRow = { id: string; target: string; region: string | null; createdAt: Date; createdBy: string }
type SealedValues = Pick<CredentialRow, 'target' | 'region'> & { sealed: Buffer }

export function makeDownloadCredentialStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): DownloadCredentialStore {
  return {
    async list(accountId) {
      const rows = await listRows<Pick<CredentialRow, 'id' | 'target' | 'region'>>(pool, listCredentials, [accountId])
      return rows.flatMap(({ id, target: text, region }) => {
        const target = readTarget(text, region)
        return typeof target === 'string' ? [] : [{ id, target }]
      })
    },

    async show(accountId) {
      const rows = await listRows<CredentialRow & SealedValues>(pool, listSealed, [accountId])
      return Promise.all(
        rows.map(async ({ sealed, ...row }) => {
          const isValid = typeof readTarget(row.target, row.region) !== 'string'
          const values = await open(accountId, { ...row, sealed })
          return { ...row, values: isValid && values !== 'sealed' ? showValues(values) : null }
        }),
      )
    },

    async open(accountId, id) {
      const row = await findRow<SealedValues>(pool, findSealed, [accountId, id])
      return row && open(accountId, row)
    },

    async put(accountId, { id, target, values, createdBy }) {
      const row = { target: toTargetText(target), region: target.kind === 's3' ? target.region : null }
      const sealed = await sealer.seal(Buffer.from(JSON.stringify(values)), downloadCredentialOf({ accountId, ...row }))
      return inTransaction(pool, async (client) => {
        // The lock makes additions to one account wait for each other, so that they are counted.
        const account = await findRow(client, 'select from accounts where id = $1 for no key update', [accountId])
        if (account === undefined) return 'no-account'
        const columns = [accountId, row.target, row.region, sealed, createdBy]
        const replaced = await findRow<{ id: string }>(client, replaceCredential, columns)
        if (replaced !== undefined) return { id: replaced.id, isReplaced: true }
        if ((await changeRows(client, countCredentials, [accountId])) >= maxCredentials) return 'full'
        await changeRows(client, insertCredential, [id, ...columns])
        return { id, isReplaced: false }
      })
    },

    async remove(accountId, id) {
      const text = 'delete from download_credentials where account_id = $1 and id = $2 returning target'
      return (await findRow<Pick<CredentialRow, 'target'>>(pool, text, [accountId, id]))?.target
    },
  }

  async function open(
    accountId: string,
    { sealed, target, region }: SealedValues,
  ): Promise<CredentialValues | 'sealed'> {
    try {
      return JSON.parse(String(await sealer.open(sealed, downloadCredentialOf({ accountId, target, region }))))
    } catch {
      return 'sealed'
    }
  }
}

/** Values open for their account and target only: whoever changes a row cannot direct them to another host. */
export const downloadCredentialOf = (row: { accountId: string; target: string; region: string | null }): Binding => [
  'download_credentials.sealed',
  row.accountId,
  row.target,
  row.region ?? '',
]

const countCredentials = 'select from download_credentials where account_id = $1'

const listCredentials = `
-- name: list-download-credentials
select id, target, region from download_credentials where account_id = $1
`

const listSealed = `
select id, target, region, created_at as "createdAt", created_by as "createdBy", sealed
from download_credentials where account_id = $1 order by created_at, id
`

const findSealed = `
-- name: find-download-credential
select target, region, sealed from download_credentials where account_id = $1 and id = $2
`

const replaceCredential = `
update download_credentials set region = $3, sealed = $4, created_by = $5, created_at = now()
where account_id = $1 and target = $2 returning id
`

const insertCredential = `
insert into download_credentials (id, account_id, target, region, sealed, created_by) values ($1, $2, $3, $4, $5, $6)
`
