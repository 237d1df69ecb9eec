import type { accountRoutes, DeliveryRow } from '@assay/contract/admin'
import { validate as isUuid } from 'uuid'
import type { Registration } from '../domain/accounts/registration.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { AuditLog } from '../domain/ports/audit-log.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { Delivery, DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { WebhookSender } from '../domain/ports/webhook-sender.ts'
import { Problem } from '../domain/problem.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import { sendSample } from '../domain/webhooks/deliver.ts'
import { type Call, getAccountId, type Handlers, requireThere } from './call.ts'

export type WebhookHandlerDeps = {
  accounts: AccountStore
  registration: Registration
  deliveries: DeliveryStore
  sender: WebhookSender
  policy: AddressPolicy
  audit: AuditLog
  clock: Clock
  /** There is something due. */
  onReplayed(): void
}

type Names =
  | 'getWebhooks'
  | 'revealWebhookSecret'
  | 'rotateWebhookSecret'
  | 'testWebhook'
  | 'listDeliveries'
  | 'getDelivery'
  | 'replayDelivery'
  | 'replayFailed'

/** The webhook secret of an account, its receivers, and what they were sent. */
export function makeWebhookHandlers(deps: WebhookHandlerDeps): Handlers<Names & keyof typeof accountRoutes> {
  const { accounts, registration, deliveries, sender, policy, audit, clock } = deps

  return {
    async getWebhooks(call) {
      const accountId = getAccountId(call)
      const { rotatedAt, previousUntil } = await accounts.findWebhookRotation(accountId)
      const endpoints = await deliveries.listEndpoints({ accountId })
      return {
        secret_rotated_at: rotatedAt?.toISOString() ?? null,
        previous_until: previousUntil?.toISOString() ?? null,
        endpoints: endpoints.map(({ url, failingSince, lastSuccessAt, pausedAt }) => ({
          url,
          failing_since: failingSince?.toISOString() ?? null,
          last_success_at: lastSuccessAt?.toISOString() ?? null,
          paused_at: pausedAt?.toISOString() ?? null,
        })),
      }
    },

    async revealWebhookSecret(call) {
      const [secret] = await accounts.listWebhookSecrets(getAccountId(call))
      await note(call, 'webhook-secret.reveal')
      return { secret: requireThere(secret, 'account') }
    },

    async rotateWebhookSecret(call) {
      const rotated = requireThere(await registration.rotateWebhookSecret(getAccountId(call)), 'account')
      await note(call, 'webhook-secret.rotate')
      return { secret: rotated.webhookSecret }
    },

    async testWebhook(call) {
      const { url } = call.body
      const wrong = checkWebAddress(url, policy)
      if (wrong.length > 0) throw new Problem({ kind: 'validation', errors: { url: wrong } })
      const secrets = await accounts.listWebhookSecrets(getAccountId(call))
      const { status, durationMs, answer } = await sendSample({ sender, clock }, { url, secrets })
      await note(call, 'webhook.test', url)
      return { status, duration_ms: durationMs, answer, delivered: status !== null && status >= 200 && status < 300 }
    },

    async listDeliveries(call) {
      const { cursor, limit: wanted, state, scan } = call.query
      const limit = Number(wanted ?? 50)
      const found = await deliveries.listDeliveries({
        ...{ accountId: getAccountId(call), limit: limit + 1 },
        ...(state === undefined ? {} : { state }),
        ...(scan === undefined ? {} : { scanId: scan }),
        ...(cursor !== undefined && isUuid(cursor) ? { before: cursor } : {}),
      })
      const items = found.slice(0, limit).map(toRow)
      return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null }
    },

    async getDelivery(call) {
      const { body, log, ...delivery } = await getOwn(call)
      const attempts = log.map(({ at, status, durationMs, answer }) => ({
        ...{ at: at.toISOString(), status, duration_ms: durationMs, answer },
      }))
      return { delivery: toRow(delivery), body, attempts }
    },

    async replayDelivery(call) {
      const { id } = await getOwn(call)
      await deliveries.replay({ id })
      deps.onReplayed()
      await note(call, 'delivery.replay', id)
    },

    async replayFailed(call) {
      const replayed = await deliveries.replay({
        failedSince: new Date(call.body.since),
        accountId: getAccountId(call),
      })
      deps.onReplayed()
      await note(call, 'delivery.replay-failed', call.body.since)
      return { replayed }
    },
  }

  async function getOwn(call: Call<'getDelivery' | 'replayDelivery'>) {
    const { id = '' } = call.params
    const found = isUuid(id) ? await deliveries.findDelivery(id) : undefined
    return requireThere(found?.accountId === getAccountId(call) && found, 'delivery')
  }

  async function note({ who, origin }: Pick<Call<'getDelivery'>, 'who' | 'origin'>, action: string, target?: string) {
    await audit.note({ actor: who.actor, action, target, accountId: who.accountId, address: origin.address })
  }
}

const toRow = (delivery: Delivery): DeliveryRow => ({
  id: delivery.id,
  scan_id: delivery.scanId,
  url: delivery.url,
  state: delivery.state,
  attempts: delivery.attempts,
  last_status: delivery.lastStatus,
  created_at: delivery.createdAt.toISOString(),
  next_at: delivery.nextAt?.toISOString() ?? null,
})
