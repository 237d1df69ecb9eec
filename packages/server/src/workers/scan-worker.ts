import type { ClaimedJob, JobStore } from '../domain/ports/job-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

type Deps = {
  jobs: JobStore
  run(job: ClaimedJob, signal: AbortSignal): Promise<void>
  /** Jobs that may run at once. */
  concurrency: number
  /** Counts other work that takes places of `concurrency`, before jobs do. */
  countOthers?(): number
  log: Logger
  isOutage?(error: unknown): boolean
}

/** Jobs of a killed worker are claimed again after this time. A lease is extended three times as often as it must be. */
const leaseMs = 15_000
const extendEveryMs = 5000
/** Finds jobs that other processes queued, and retries that are due; jobs of this process poke. */
const pollMs = 250
/** Share of `concurrency` that jobs keep however much other work there is. */
const leastShare = 1 / 8

/** Runs background scans. */
export function openScanWorker(deps: Deps) {
  const { jobs, run, concurrency, countOthers = () => 0, log, isOutage = () => false } = deps
  return openLeasedWork({
    name: 'background scans',
    countRoom: (running) => Math.max(concurrency - countOthers(), Math.ceil(concurrency * leastShare)) - running,
    claim: (limit) => jobs.claim(limit, leaseMs),
    findPollMs: () => pollMs,
    // One claim takes many jobs: claiming after each job that ends would take them one by one.
    isHungry: (running) => running <= concurrency / 2,
    pokeEndsBackOff: true,
    toLease: ({ lease }) => lease,
    toId: ({ scan }) => scan.id,
    run: (job, { stopping }) => run(job, stopping),
    renewal: {
      everyMs: extendEveryMs,
      async extend(leases) {
        await jobs.extend(leases, leaseMs)
        // A job whose lease was lost runs on: completing it is refused by the store.
        return undefined
      },
      release: (leases) => Promise.all(leases.map((lease) => jobs.release(lease, { ms: 0, counts: false }))),
    },
    log,
    isOutage,
  })
}
