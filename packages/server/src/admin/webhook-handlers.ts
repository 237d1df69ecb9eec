import type { DeliveryRow } from '@assay/contract/admin'
import type { Registration } from '../domain/accounts/registration.ts'
import type { Clock } from '../domain/clock.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { Delivery, DeliveryStore, WebhookSender } from '../domain/ports/delivery-store.ts'
import { Problem } from '../domain/problem.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import { sendSample } from '../domain/webhooks/deliver.ts'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import { type Call, getAccountId, getId, type Handlers, listPage, requireFound } from './call.ts'

export type WebhookHandlerDeps = {
  accounts: AccountStore
  registration: Registration
  deliveries: DeliveryStore
  sender: WebhookSender
  policy: AddressPolicy
  clock: Clock
  /** Wakes the delivery worker after deliveries become due. */
  onReplayed(): void
}

/** Handlers for the webhook secret of an account, its receivers and deliveries. */
export function makeWebhookHandlers(deps: WebhookHandlerDeps) {
  const { accounts, registration, deliveries, sender, policy, clock } = deps

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
      await call.audit('webhook-secret.reveal')
      return { secret: requireFound(secret, 'account') }
    },

    async rotateWebhookSecret(call) {
      const rotated = requireFound(await registration.rotateWebhookSecret(getAccountId(call)), 'account')
      await call.audit('webhook-secret.rotate')
      return { secret: rotated.webhookSecret }
    },

    async testWebhook(call) {
      const { url } = call.body
      const errors = checkWebAddress(url, policy)
      if (errors.length > 0) throw new Problem({ kind: 'validation', errors: { url: errors } })
      const secrets = await accounts.listWebhookSecrets(getAccountId(call))
      const { status, durationMs, answer, isPublic } = await sendSample({ sender, clock }, { url, secrets })
      await call.audit('webhook.test', hideCredentials(url))
      // The operator opened the network for webhooks, not for members to read what answers there.
      const shown = isPublic ? answer : hiddenAnswer
      return {
        status,
        duration_ms: durationMs,
        answer: shown,
        delivered: status !== null && status >= 200 && status < 300,
      }
    },

    async listDeliveries(call) {
      const { state, scan } = call.query
      const filter = {
        accountId: getAccountId(call),
        ...(state === undefined ? {} : { state }),
        ...(scan === undefined ? {} : { scanId: scan }),
      }
      const list = ({ cursor, limit }: { cursor: string | undefined; limit: number }) =>
        deliveries.listDeliveries({ ...filter, limit, ...(cursor === undefined ? {} : { before: cursor }) })
      return listPage(call.query, list, toRow)
    },

    async getDelivery(call) {
      const { body, log, ...delivery } = await getOwn(call)
      const attempts = log.map(({ at, status, durationMs, answer }) => ({
        at: at.toISOString(),
        status,
        duration_ms: durationMs,
        answer,
      }))
      return { delivery: toRow(delivery), body, attempts }
    },

    async replayDelivery(call) {
      const { id } = await getOwn(call)
      await deliveries.replay({ ids: [id] })
      deps.onReplayed()
      await call.audit('delivery.replay', id)
    },

    async replayFailed(call) {
      const replayed = await deliveries.replay({
        failedSince: new Date(call.body.since),
        accountId: getAccountId(call),
      })
      deps.onReplayed()
      await call.audit('delivery.replay-failed', call.body.since)
      return { replayed }
    },
  } satisfies Partial<Handlers>

  async function getOwn(call: Call<'getDelivery' | 'replayDelivery'>) {
    const found = await deliveries.findDelivery(getId(call, 'delivery'))
    return requireFound(found?.accountId === getAccountId(call) && found, 'delivery')
  }
}

const hiddenAnswer = 'The response is not shown, because the address of the receiver is not public.'

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
