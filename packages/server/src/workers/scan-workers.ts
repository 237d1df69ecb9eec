import type {
  ClaimedJob,
  ClaimedRemoteScan,
  JobStore,
  Notifications,
  RemoteScanStore,
} from '../domain/ports/job-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

/**
 * Jobs of a killed worker are claimed again after this time. A lease is extended three times as often as it must be.
 */
const leaseMs = 15_000
const extendEveryMs = 5000
/** Poll interval that finds jobs of other processes and due retries; a job of this process pokes. */
const pollMs = 250
/** Poll interval after a claim that found a job for each of many places: slow jobs may hold the others for long. */
const busyPollMs = 50
/** Share of `concurrency` that jobs keep however much other work there is. */
const leastShare = 1 / 8

/** Runs background scans. */
export function openScanWorker(deps: {
  jobs: JobStore
  run(job: ClaimedJob, signal: AbortSignal): Promise<void>
  /** Jobs that may run at once. */
  concurrency: number
  /** Counts other work that takes places of `concurrency`, before jobs do. */
  countOthers?(): number
  /** Counts running jobs whose result waits to be recorded: they need no engine, so others may begin. */
  countCompleting(): number
  log: Logger
  isOutage?(error: unknown): boolean
}) {
  const { jobs, run, concurrency, countOthers = () => 0, countCompleting, log, isOutage = () => false } = deps
  // At most as many results wait as jobs are scanned, also when the database is slow.
  const countScanning = (running: number) => running - Math.min(countCompleting(), concurrency)
  return openLeasedWork({
    name: 'background scans',
    countRoom: (running) =>
      Math.max(concurrency - countOthers(), Math.ceil(concurrency * leastShare)) - countScanning(running),
    claim: (limit) => jobs.claim(limit, leaseMs),
    findPollMs: (claimed, room) => (claimed === room && room >= concurrency / 4 ? busyPollMs : pollMs),
    // A claim costs PostgreSQL as much as about 17 of its jobs, so each takes many. It waits until half of the places
    // are free; the jobs in the others keep the engine busy meanwhile.
    claimsMore: (running, asked) => countScanning(running) + asked <= concurrency / 2,
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
      release: (leases) => Promise.all(leases.map((lease) => jobs.release(lease, { ms: 0, countsAttempt: false }))),
    },
    log,
    isOutage,
  })
}

/** The lease is short, because a client waits: when a worker dies, another must take over soon. */
const remoteLeaseMs = 6000
const remotePollMs = 500
/**
 * Poll interval while notifications do not arrive, for example behind a pooler that shares connections by transaction.
 */
const pollWithoutNotificationsMs = 40

/** Runs scans that API nodes ask for. A scan whose client left, or whose lease was lost, is cancelled. */
export function openRemoteScanWorker(deps: {
  remoteScans: RemoteScanStore
  run(remoteScan: ClaimedRemoteScan, signal: AbortSignal): Promise<void>
  notifications: Notifications
  /** Remote scans that may run at once. */
  concurrency: number
  log: Logger
  isOutage?(error: unknown): boolean
  leaseMs?: number
}) {
  const { remoteScans, run, notifications, concurrency, log, isOutage = () => false, leaseMs = remoteLeaseMs } = deps
  const work = openLeasedWork({
    name: 'remote scans',
    countRoom: (running) => concurrency - running,
    claim: (limit) => remoteScans.claim(limit, leaseMs),
    findPollMs: () => (notifications.isListening() ? remotePollMs : pollWithoutNotificationsMs),
    claimsMore: (running) => running === concurrency - 1,
    pokeEndsBackOff: true,
    toLease: ({ lease }) => lease,
    toId: ({ lease }) => lease.id,
    run: (remoteScan, { stopping, lost }) => run(remoteScan, AbortSignal.any([stopping, lost])),
    renewal: {
      everyMs: leaseMs / 3,
      extend: (leases) => remoteScans.extend(leases, leaseMs),
      async release(leases) {
        await Promise.all(leases.map((lease) => remoteScans.release(lease)))
        // Other workers would find the released scans only when they poll.
        notifications.send('remote-scans')
      },
    },
    log,
    isOutage,
  })
  notifications.on('remote-scans', work.poke)
  return work
}
