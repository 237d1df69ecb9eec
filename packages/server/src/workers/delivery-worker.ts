import type { Clock } from '../domain/ports/clock.ts'
import type { ClaimedDelivery, DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { Deliver, Delivered } from '../domain/webhooks/deliver.ts'
import type { Logger } from '../runtime/logger.ts'

/** Other processes and operators make deliveries due without a word to this one. */
const lookEveryMs = 1000
/** While a receiver has more waiting than places, that hides when the next one of another is due. */
const lookAgainMs = 250
const minBackOffMs = 250
const maxBackOffMs = 5000

/**
 * Attempts what is due, many at once. The store lends at most `perHost` deliveries of one receiver at a time, so a slow
 * one fills its own places and no others. The lease outlives an attempt: what a killed process had is taken over after it.
 */
export function openDeliveryWorker(deps: {
  store: Pick<DeliveryStore, 'claim' | 'findNextDue'>
  deliver: Deliver
  log: Logger
  clock: Clock
  /** The database is away: somebody else says so, once. */
  isOutage?(error: unknown): boolean
  /** 32 unless told. */
  concurrency?: number
  /** 4 unless told. */
  perHost?: number
  /** 30 s unless told. */
  leaseMs?: number
}) {
  const { store, deliver, log, clock, isOutage, concurrency = 32, perHost = 4, leaseMs = 30_000 } = deps
  const running = new Set<Promise<void>>()
  const alarm = newAlarm()
  const outage = newOutage(log, isOutage)
  let isClosing = false
  const loop = run()

  return {
    /** There is a new delivery. */
    poke: alarm.ring,
    countRunning: () => running.size,
    /** Those under way are brought to their end, which is at most one attempt away; no others are begun. */
    async close() {
      isClosing = true
      alarm.ring()
      await loop
      await Promise.all(running)
    },
  }

  async function run() {
    let backOffMs = 0
    while (!isClosing) {
      try {
        const waitMs = await claimDue()
        backOffMs = 0
        outage.end()
        await alarm.wait(waitMs)
      } catch (error) {
        outage.report(error)
        backOffMs = Math.min(Math.max(2 * backOffMs, minBackOffMs), maxBackOffMs)
        await waitOut(backOffMs)
      }
    }
  }

  /** Begins what is due, and says how long nothing new is to be expected. */
  async function claimDue(): Promise<number> {
    const free = concurrency - running.size
    if (free === 0) return lookEveryMs
    const claimed = await store.claim({ limit: free, perHost, leaseMs })
    for (const one of claimed) start(one)
    if (claimed.length === free) return lookEveryMs
    const nextAt = await store.findNextDue()
    const dueInMs = nextAt === undefined ? lookEveryMs : nextAt.getTime() - clock.now().getTime()
    // What is due and was not lent waits for a place, and the end of an attempt rings the alarm.
    return dueInMs > 0 ? Math.min(dueInMs, lookEveryMs) : lookAgainMs
  }

  function start(claimed: ClaimedDelivery) {
    const attempt = deliver(claimed)
      .then(
        (delivered) => logDelivered(log, claimed, delivered),
        (error) => outage.report(error, claimed.id),
      )
      .finally(() => {
        running.delete(attempt)
        alarm.ring()
      })
    running.add(attempt)
  }

  /** Attempts that end and new deliveries ring the alarm, and must not cut the back-off short. */
  async function waitOut(ms: number) {
    const endsAt = performance.now() + ms
    for (let left = ms; left > 0 && !isClosing; left = endsAt - performance.now()) await alarm.wait(left)
  }
}

/** A ring while nobody waits is kept for the next who does. */
function newAlarm() {
  let isRung = false
  let wake: (() => void) | undefined
  return {
    ring() {
      isRung = true
      wake?.()
    },
    async wait(ms: number) {
      if (!isRung) {
        const { promise, resolve } = Promise.withResolvers<void>()
        const timer = setTimeout(resolve, Math.ceil(ms))
        wake = resolve
        await promise
        clearTimeout(timer)
        wake = undefined
      }
      isRung = false
    },
  }
}

/** Says once that something is broken, and once that it works again, however many attempts meet it meanwhile. */
function newOutage(log: Logger, isKnown: (error: unknown) => boolean = () => false) {
  let isReported = false
  return {
    report(error: unknown, deliveryId?: string) {
      if (isKnown(error)) return
      if (!isReported) log.error({ err: error, deliveryId }, 'webhooks cannot be delivered; trying again')
      isReported = true
    },
    end() {
      if (isReported) log.info('webhooks are delivered again')
      isReported = false
    },
  }
}

/** Without the address, which may hold secrets of the receiver: `webhooks show` has it. */
function logDelivered(log: Logger, { id, accountId }: ClaimedDelivery, delivered: Delivered) {
  const { attempt, outcome, isRecorded, fault } = delivered
  const { status, durationMs: ms } = attempt
  const line = { deliveryId: id, accountId, status, ms, state: outcome.state }
  if (fault !== undefined) log.error({ ...line, err: fault }, 'a webhook could not be sent')
  else if (!isRecorded) log.info(line, 'a webhook was attempted by two; the other one records it')
  else if (outcome.state === 'dead') log.warn(line, 'a webhook is given up')
  else log.debug(line, 'webhook attempted')
}
