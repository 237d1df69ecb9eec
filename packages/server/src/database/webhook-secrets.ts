import type { Pool } from 'pg'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { Binding, Sealer } from '../domain/ports/secret-store.ts'
import { findRow, inTransaction } from './query.ts'

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
