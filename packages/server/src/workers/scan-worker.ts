import type { ClaimedJob, JobStore } from '../domain/ports/job-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

type Deps = {
  jobs: JobStore
  run(job: ClaimedJob, signal: AbortSignal): Promise<void>
  /** Jobs at once. */
  concurrency: number
  /** Other work that takes of that, and comes first. */
  countOthers?(): number
  log: Logger
  /** The database is away: somebody else says so, once. */
  isOutage?(error: unknown): boolean
}

/** A worker that was killed loses its jobs after this; a living one says so three times as often. */
const leaseMs = 15_000
const extendEveryMs = 5000
/** For jobs of other processes, and those whose pause is over; our own are told of at once. */
const pollMs = 250
/** However much else there is to do, nobody's job waits for ever. */
const leastShare = 1 / 8

/** Does background scans. */
export function openScanWorker(deps: Deps) {
  const { jobs, run, concurrency, countOthers = () => 0, log, isOutage = () => false } = deps
  return openLeasedWork({
    ...{ name: 'background scans', log, isOutage, extendEveryMs, findPollMs: () => pollMs },
    countRoom: (running) => Math.max(concurrency - countOthers(), Math.ceil(concurrency * leastShare)) - running,
    claim: (limit) => jobs.claim(limit, leaseMs),
    toLease: ({ lease }) => lease,
    toId: ({ scan }) => scan.id,
    run: (job, { stopping }) => run(job, stopping),
    release: (leases) => Promise.all(leases.map((lease) => jobs.release(lease, { ms: 0, counts: false }))),
    async extend(leases) {
      await jobs.extend(leases, leaseMs)
      // One that is another's by now cannot be completed by us: no need to end it.
      return undefined
    },
    // Claims are for many at a time: not for each that ends, but before there is nothing to do.
    isHungry: (running) => running <= concurrency / 2,
  })
}
