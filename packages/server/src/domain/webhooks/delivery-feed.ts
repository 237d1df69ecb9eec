import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryList } from '@assay/contract'
import type { Clock } from '../clock.ts'
import type { AccountStore } from '../ports/account-store.ts'
import type { Caller } from '../ports/admission-gate.ts'
import type { DeliveriesSince, DeliveryStore } from '../ports/delivery-store.ts'
import { toSignatureHeaders } from './deliver.ts'

const pollMs = 1000
/** Requests of an account that may wait at once, on each node; others are answered at once. */
const maxWaiting = 4

/** Lists the deliveries of an account as they are made, signed as in their attempts. Changes no delivery. */
export function makeDeliveryFeed(deps: {
  deliveries: Pick<DeliveryStore, 'listSince'>
  accounts: Pick<AccountStore, 'listWebhookSecrets'>
  clock: Clock
}) {
  const waitingByAccount = new Map<string, number>()

  async function waitForDeliveries(
    { accountId, isTest }: Caller,
    since: string | undefined,
    { waitMs, signal }: { waitMs: number; signal: AbortSignal },
  ): Promise<DeliveriesSince> {
    const waiting = waitingByAccount.get(accountId) ?? 0
    const deadline = performance.now() + (waiting < maxWaiting && since !== undefined ? waitMs : 0)
    waitingByAccount.set(accountId, waiting + 1)
    try {
      for (;;) {
        const found = await deps.deliveries.listSince({ accountId, isTest, since })
        const leftMs = deadline - performance.now()
        if (found.deliveries.length > 0 || leftMs <= 0 || signal.aborted) return found
        await sleep(Math.min(leftMs, pollMs), undefined, { signal }).catch(() => {})
      }
    } finally {
      const left = (waitingByAccount.get(accountId) ?? 1) - 1
      if (left > 0) waitingByAccount.set(accountId, left)
      else waitingByAccount.delete(accountId)
    }
  }

  return {
    async list(
      caller: Caller,
      since: string | undefined,
      wait: { waitMs: number; signal: AbortSignal },
    ): Promise<DeliveryList> {
      const { until, deliveries } = await waitForDeliveries(caller, since, wait)
      const secrets = deliveries.length === 0 ? [] : await deps.accounts.listWebhookSecrets(caller.accountId)
      const at = deps.clock.now()
      return {
        until,
        deliveries: deliveries.map(({ id, scanId, url, createdAt, body }) => ({
          id,
          scan_id: scanId,
          callback_url: url,
          created_at: createdAt.toISOString(),
          body,
          headers: toSignatureHeaders({ id, body: Buffer.from(body), secrets, attempts: 0, at }),
        })),
      }
    },
  }
}

export type DeliveryFeed = ReturnType<typeof makeDeliveryFeed>
