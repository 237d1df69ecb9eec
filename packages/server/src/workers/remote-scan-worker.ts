import type { Notifications } from '../domain/ports/notifications.ts'
import type { ClaimedRemoteScan, RemoteScanStore } from '../domain/ports/remote-scan-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

type Deps = {
  remoteScans: RemoteScanStore
  run(remoteScan: ClaimedRemoteScan, signal: AbortSignal): Promise<void>
  notifications: Notifications
  /** Remote scans at once. */
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
export function openRemoteScanWorker(deps: Deps) {
  const { remoteScans, run, notifications, concurrency, log, isOutage = () => false, leaseMs = defaultLeaseMs } = deps
  const work = openLeasedWork({
    ...{ name: 'remote scans of other nodes', log, isOutage, extendEveryMs: leaseMs / 3 },
    findPollMs: () => (notifications.isListening() ? pollMs : pollOftenMs),
    countRoom: (running) => concurrency - running,
    claim: (limit) => remoteScans.claim(limit, leaseMs),
    toLease: ({ lease }) => lease,
    toId: ({ lease }) => lease.id,
    run: (remoteScan, { stopping, lost }) => run(remoteScan, AbortSignal.any([stopping, lost])),
    async release(leases) {
      await Promise.all(leases.map((lease) => remoteScans.release(lease)))
      // Nobody else hears of them otherwise: it would look by itself half a second later.
      notifications.send('remote-scans')
    },
    extend: (leases) => remoteScans.extend(leases, leaseMs),
    isHungry: (running) => running === concurrency - 1,
  })
  notifications.on('remote-scans', work.poke)
  return work
}
