import type { ClaimedErrand, ErrandStore } from '../domain/ports/errand-store.ts'
import type { WakeUps } from '../domain/ports/wake-ups.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

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

/** Takes looks that other nodes ask for. One that nobody waits for any more, or that another has by now, is let go. */
export function openErrandWorker(deps: Deps) {
  const { errands, run, wakeUps, concurrency, log, isOutage = () => false, leaseMs = defaultLeaseMs } = deps
  const work = openLeasedWork({
    ...{ name: 'errands of other nodes', log, isOutage, extendEveryMs: leaseMs / 3 },
    findPollMs: () => (wakeUps.isListening() ? pollMs : pollOftenMs),
    countRoom: (running) => concurrency - running,
    claim: (limit) => errands.claim(limit, leaseMs),
    toLease: ({ lease }) => lease,
    toId: ({ lease }) => lease.id,
    run: (errand, { stopping, lost }) => run(errand, AbortSignal.any([stopping, lost])),
    async giveBack(leases) {
      await Promise.all(leases.map((lease) => errands.giveBack(lease)))
      // Nobody else hears of them otherwise: it would look by itself half a second later.
      wakeUps.tell('errands')
    },
    extend: (leases) => errands.extend(leases, leaseMs),
    isHungry: (running) => running === concurrency - 1,
  })
  wakeUps.on('errands', work.poke)
  return work
}
