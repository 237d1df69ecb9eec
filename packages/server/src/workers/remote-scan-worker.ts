import type { Notifications } from '../domain/ports/notifications.ts'
import type { ClaimedRemoteScan, RemoteScanStore } from '../domain/ports/remote-scan-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

type Deps = {
  remoteScans: RemoteScanStore
  run(remoteScan: ClaimedRemoteScan, signal: AbortSignal): Promise<void>
  notifications: Notifications
  /** Remote scans that may run at once. */
  concurrency: number
  log: Logger
  isOutage?(error: unknown): boolean
  leaseMs?: number
}

/** Short, because a client waits: when a worker dies, another must take over soon. */
const defaultLeaseMs = 6000
const pollMs = 500
/** Used while notifications do not arrive, for example behind a pooler that shares connections by transaction. */
const pollWithoutNotificationsMs = 40

/** Runs scans that API nodes ask for. A scan whose client left, or whose lease was lost, is cancelled. */
export function openRemoteScanWorker(deps: Deps) {
  const { remoteScans, run, notifications, concurrency, log, isOutage = () => false, leaseMs = defaultLeaseMs } = deps
  const work = openLeasedWork({
    name: 'remote scans',
    countRoom: (running) => concurrency - running,
    claim: (limit) => remoteScans.claim(limit, leaseMs),
    findPollMs: () => (notifications.isListening() ? pollMs : pollWithoutNotificationsMs),
    isHungry: (running) => running === concurrency - 1,
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
