import type { ClaimedErrand, ErrandLease, ErrandStore } from '../domain/ports/errand-store.ts'
import type { WakeUps } from '../domain/ports/wake-ups.ts'
import { atMost } from '../runtime/at-most.ts'
import type { Logger } from '../runtime/logger.ts'

type Deps = {
  errands: ErrandStore
  run(errand: ClaimedErrand, signal: AbortSignal): Promise<void>
  wakeUps: WakeUps
  /** Errands at once. */
  concurrency: number
  log: Logger
  /** The database is away: somebody else says so, once. */
  isOutage?(error: unknown): boolean
  /** 6 s unless told. */
  leaseMs?: number
}

/** Somebody waits: one that is lost with its worker must be another's soon. */
const defaultLeaseMs = 6000
const pollMs = 500
/** When nobody tells us. */
const pollOftenMs = 40
const lastRetryMs = 5000
/** For giving errands back, when time was up already. */
const giveBackMs = 3000

/** Takes looks that other nodes ask for. One that nobody waits for any more, or that another has by now, is let go. */
export function openErrandWorker(deps: Deps) {
  const { errands, run, wakeUps, concurrency, log, isOutage = () => false, leaseMs = defaultLeaseMs } = deps
  const running = new Map<string, { lease: ErrandLease; over: AbortController }>()
  const stopping = new AbortController()
  let failures = 0
  let claiming: Promise<void> | undefined
  let wasPoked = false
  let timer: NodeJS.Timeout | undefined
  let whenIdle: (() => void) | undefined

  const claim = () => {
    if (claiming !== undefined || stopping.signal.aborted) {
      wasPoked = true
      return
    }
    clearTimeout(timer)
    claiming = claimAll().finally(() => {
      claiming = undefined
      const waitMs = wakeUps.isListening() ? pollMs : pollOftenMs
      if (!stopping.signal.aborted) timer = setTimeout(claim, Math.min(waitMs * 2 ** failures, lastRetryMs))
    })
  }

  const claimAll = async () => {
    try {
      do {
        wasPoked = false
        const room = concurrency - running.size
        if (room === 0) break
        const claimed = await errands.claim(room, leaseMs)
        // They came too late for us, and somebody waits for them.
        if (stopping.signal.aborted) await giveBack(claimed.map(({ lease }) => lease))
        else for (const errand of claimed) void start(errand)
      } while (wasPoked && !stopping.signal.aborted)
      failures = 0
    } catch (error) {
      if (failures++ === 0 && !isOutage(error)) {
        log.error({ err: error }, 'errands of other nodes cannot be claimed; trying again')
      }
    }
  }

  const start = async (errand: ClaimedErrand) => {
    const { lease } = errand
    const over = new AbortController()
    running.set(lease.token, { lease, over })
    try {
      await run(errand, AbortSignal.any([stopping.signal, over.signal]))
    } catch (error) {
      // Its lease runs out, and another tries.
      if (!isOutage(error)) log.error({ err: error, errand: lease.id }, 'an errand could not be ended')
    } finally {
      const wasFull = running.size === concurrency
      running.delete(lease.token)
      if (running.size === 0) whenIdle?.()
      if (wasFull) claim()
    }
  }

  const giveBack = (leases: ErrandLease[]) =>
    Promise.all(leases.map((lease) => errands.giveBack(lease)))
      // Nobody else hears of them otherwise: it would look by itself half a second later.
      .then(() => wakeUps.tell('errands'))
      .catch((error) => {
        log.warn(
          { err: error, errands: leases.length },
          'errands could not be given back; they wait for their leases to end',
        )
      })

  const extend = async () => {
    const held = [...running.values()]
    if (held.length === 0) return
    const leases = held.map(({ lease }) => lease)
    const ours = new Set((await errands.extend(leases, leaseMs)).map(({ token }) => token))
    for (const { lease, over } of held)
      if (!ours.has(lease.token)) over.abort(new Error('Nobody waits for it any more'))
  }
  const extending = setInterval(() => {
    extend().catch((error) => {
      if (!isOutage(error)) log.error({ err: error }, 'the leases of errands could not be extended')
    })
  }, leaseMs / 3)
  wakeUps.on('errands', claim)
  claim()

  const stop = () => {
    stopping.abort(new Error('The service is stopping'))
    clearTimeout(timer)
  }

  return {
    countRunning: () => running.size,
    /** No errand is begun any more; downloads end, and are given back. */
    stop,
    /** Those that run may finish; what does not in time is given back, for another to begin anew at once. */
    async close(withinMs: number) {
      stop()
      await atMost(claiming, giveBackMs)
      if (running.size > 0) {
        await atMost(
          new Promise<void>((resolve) => {
            whenIdle = resolve
          }),
          withinMs,
        )
      }
      clearInterval(extending)
      const left = [...running.values()].map(({ lease }) => lease)
      if (left.length === 0) return
      log.info({ errands: left.length }, 'errands that did not end in time are given back')
      await atMost(giveBack(left), giveBackMs)
    },
  }
}
