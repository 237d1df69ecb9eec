import { findConditions } from '../domain/alerts/find-conditions.ts'
import type { SendAlert } from '../domain/alerts/send-alert.ts'
import type { AlertStore, ClaimedAlert } from '../domain/ports/alert-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

/** Conditions are looked for this often. */
const pollMs = 10_000
/** A process does not look if another one did within this part of the interval. */
const minAgeShare = 0.8
const concurrency = 4
/** Longer than an attempt. */
const leaseMs = 120_000
/** Pauses before the further attempts at a message. */
const retryMs = [10_000, 60_000, 300_000, 1_800_000, 7_200_000]

/**
 * Looks for conditions to tell of, and sends the messages. The store lets one process look at a time, and leases each
 * message to one process. A message whose process is killed is sent again when its lease ends.
 */
export function openAlertWorker(deps: {
  store: Pick<AlertStore, 'update' | 'claim' | 'recordAttempt'>
  send: SendAlert
  log: Logger
  isOutage(error: unknown): boolean
  everyMs?: number
}) {
  const { store, send, log, isOutage, everyMs = pollMs } = deps
  const { poke, close } = openLeasedWork({
    name: 'alerts',
    countRoom: (running) => concurrency - running,
    async claim(limit) {
      const [looked] = await Promise.allSettled([store.update(findConditions, minAgeShare * everyMs)])
      const claimed = await store.claim(limit, leaseMs)
      // Messages that are waiting are sent also while the look for conditions fails.
      if (looked.status === 'rejected' && claimed.length === 0) throw looked.reason
      return claimed
    },
    findPollMs: () => everyMs,
    claimsMore: () => false,
    pokeEndsBackOff: false,
    toLease: ({ token }: ClaimedAlert) => ({ token }),
    toId: ({ message }) => message.id,
    async run(claimed) {
      const { channel, message, attempts } = claimed
      const failure = await send(channel, message, attempts)
      const pauseMs = failure === null ? undefined : retryMs[attempts]
      await store.recordAttempt(claimed, { failure, pauseMs })
      const line = { channelId: channel.id, accountId: channel.accountId, kind: channel.kind, topic: message.topic }
      if (failure === null) log.info(line, `alert sent: ${message.state}`)
      else log.warn({ ...line, reason: failure }, pauseMs === undefined ? 'an alert was not sent' : 'alert delayed')
    },
    log,
    isOutage,
  })
  /** Running attempts are finished on close, which takes at most the time limit of one attempt. */
  return { poke, close: () => close() }
}
