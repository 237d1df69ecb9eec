import type { ClaimedErrand, ErrandLease, ErrandStore } from '../domain/ports/errand-store.ts'
import type { WakeUps } from '../domain/ports/wake-ups.ts'
import type { Logger } from '../runtime/logger.ts'

type Deps = {
  errands: ErrandStore
  run(errand: ClaimedErrand, signal: AbortSignal): Promise<void>
  wakeUps: WakeUps
  /** Errands at once. */
  concurrency: number
  log: Logger
  /** 6 s unless told. */
  leaseMs?: number
}

/** Somebody waits: one that is lost with its worker must be another's soon. */
const defaultLeaseMs = 6000
const pollMs = 500
/** When nobody tells us. */
const pollOftenMs = 40
const lastRetryMs = 5000

/** Takes looks that other nodes ask for. One that nobody waits for any more, or that another has by now, is let go. */
export function openErrandWorker({ errands, run, wakeUps, concurrency, log, leaseMs = defaultLeaseMs }: Deps) {
  const running = new Map<string, { lease: ErrandLease; over: AbortController }>()
  const stopping = new AbortController()
  let failures = 0
  let isClaiming = false
  let wasPoked = false
  let timer: NodeJS.Timeout | undefined
  let whenIdle: (() => void) | undefined

  const claim = async () => {
    if (isClaiming || stopping.signal.aborted) {
      wasPoked = true
      return
    }
    isClaiming = true
    clearTimeout(timer)
    try {
      do {
        wasPoked = false
        const room = concurrency - running.size
        if (room === 0) break
        for (const errand of await errands.claim(room, leaseMs)) void start(errand)
      } while (wasPoked)
      failures = 0
    } catch (error) {
      if (failures++ === 0) log.error({ err: error }, 'errands of other nodes cannot be claimed; trying again')
    } finally {
      isClaiming = false
      const waitMs = wakeUps.isListening() ? pollMs : pollOftenMs
      if (!stopping.signal.aborted) timer = setTimeout(claim, Math.min(waitMs * 2 ** failures, lastRetryMs))
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
      log.error({ err: error, errand: lease.id }, 'an errand could not be ended')
    } finally {
      const wasFull = running.size === concurrency
      running.delete(lease.token)
      if (running.size === 0) whenIdle?.()
      if (wasFull) void claim()
    }
  }

  const extend = async () => {
    const held = [...running.values()]
    if (held.length === 0) return
    const leases = held.map(({ lease }) => lease)
    const ours = new Set((await errands.extend(leases, leaseMs)).map(({ token }) => token))
    for (const { lease, over } of held)
      if (!ours.has(lease.token)) over.abort(new Error('Nobody waits for it any more'))
  }
  const extending = setInterval(() => {
    extend().catch((error) => log.error({ err: error }, 'the leases of errands could not be extended'))
  }, leaseMs / 3)
  wakeUps.on('errands', () => void claim())
  void claim()

  return {
    countRunning: () => running.size,
    /** Those that run may finish; what does not in time is another's when its lease is over. */
    async close(withinMs: number) {
      stopping.abort(new Error('The service is stopping'))
      clearTimeout(timer)
      if (running.size > 0) {
        await new Promise<void>((resolve) => {
          whenIdle = resolve
          setTimeout(resolve, withinMs).unref()
        })
      }
      clearInterval(extending)
    },
  }
}
