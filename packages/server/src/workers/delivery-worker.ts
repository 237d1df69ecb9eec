import type { ClaimedDelivery, DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { AttemptResult, Deliver } from '../domain/webhooks/deliver.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

/** Poll interval: other processes and operator commands make deliveries due without a notification. */
const pollMs = 1000
/**
 * While a host with all its places taken has a due delivery, the store cannot say when the next one of another host is
 * due.
 */
const blockedPollMs = 250

/**
 * Attempts due deliveries. The store hands out at most `perHost` of one host at a time, over all processes, so a slow
 * receiver delays only its own deliveries. The lease is longer than an attempt, so it is neither extended nor released;
 * deliveries of a killed process are claimed again when their leases end.
 */
export function openDeliveryWorker(deps: {
  store: Pick<DeliveryStore, 'claim' | 'findNextDueMs'>
  deliver: Deliver
  log: Logger
  isOutage?(error: unknown): boolean
  concurrency?: number
  perHost?: number
  leaseMs?: number
}) {
  const { store, deliver, log, isOutage = () => false } = deps
  const { concurrency = 32, perHost = 4, leaseMs = 30_000 } = deps

  /** Whether the last claim found nothing: the next one looks first whether a delivery is due, without a transaction. */
  let isIdle = false

  const { poke, countRunning, close } = openLeasedWork({
    name: 'webhook deliveries',
    countRoom: (running) => concurrency - running,
    async claim(limit) {
      if (isIdle && ((await store.findNextDueMs()) ?? Infinity) > 0) return []
      const claimed = await store.claim({ limit, perHost, leaseMs })
      isIdle = claimed.length === 0
      return claimed
    },
    async findPollMs(claimed, room) {
      if (claimed === room) return pollMs
      const dueMs = await store.findNextDueMs()
      if (dueMs === undefined) return pollMs
      return dueMs > 0 ? Math.min(Math.ceil(dueMs), pollMs) : blockedPollMs
    },
    // Each attempt that ends frees a place of its host.
    claimsMore: () => true,
    // A completed scan pokes even while claims of deliveries fail, so a poke does not show that claims work again.
    pokeEndsBackOff: false,
    toLease: ({ id, token }) => ({ id, token }),
    toId: ({ id }) => id,
    run: async (claimed) => logDelivered(log, claimed, await deliver(claimed)),
    log,
    isOutage,
  })
  /** Running attempts are finished on close, which takes at most the time limit of one attempt. */
  return { poke, countRunning, close: () => close() }
}

/** Leaves the URL out of the log, because it may contain secrets of the receiver; `webhooks show` prints it. */
function logDelivered(log: Logger, { id, accountId }: ClaimedDelivery, delivered: AttemptResult) {
  const { attempt, outcome, isRecorded, fault } = delivered
  const { status, durationMs: ms } = attempt
  const line = { deliveryId: id, accountId, status, ms, state: outcome.state }
  if (fault !== undefined) log.error({ ...line, err: fault }, 'cannot send a webhook')
  else if (!isRecorded) log.info(line, 'a webhook was attempted twice; the other attempt is recorded')
  else if (outcome.state === 'dead') log.warn(line, 'a webhook failed for good: no attempts are left')
  else log.debug(line, 'webhook attempted')
}
