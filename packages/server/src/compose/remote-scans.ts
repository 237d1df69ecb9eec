import { availableParallelism } from 'node:os'
import type { ScanKind } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
import { openNotifications } from '../database/notifications.ts'
import type { Database } from '../database/open-database.ts'
import { makeRemoteScanStore } from '../database/remote-scan-store.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import { makeRemoteScanClient } from '../domain/remote-scans/remote-scan-client.ts'
import { makeRunRemoteScan } from '../domain/remote-scans/run-remote-scan.ts'
import { listQueues } from '../domain/scans/jobs.ts'
import type { Scanner } from '../domain/scans/scanner.ts'
import { makeResultWaiters } from '../domain/scans/scanning.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { openRemoteScanWorker } from '../workers/scan-workers.ts'

type Deps = {
  database: Database
  contents: JobContents
  kinds: ScanKind[]
  /** The kinds of scan that this process claims at the moment. */
  listClaimedKinds(): ScanKind[]
  log: Logger
}

/** As many as background jobs, which make room for remote scans. */
const remoteScansPerCore = 64

/** Opens what nodes share: notifications, and the remote scans that an API node asks a worker for. */
export function openRemoteScans(config: Config, { database, contents, kinds, listClaimedKinds, log }: Deps) {
  const isAlone = config.databaseUrl === undefined
  const notifications = openNotificationsOf(database, { isAlone, log })
  const resultWaiters = makeResultWaiters()
  notifications.on('completed', (ids) => ids.forEach(resultWaiters.notify))
  const remoteScans = makeRemoteScanStore({
    ...database,
    listQueues: () => listQueues(listClaimedKinds(), contents.storeIds),
  })

  return {
    remoteScans,
    resultWaiters,
    notifications,
    /** For a node without engines: a scanner that passes each scan to a worker. */
    makeRemoteScanClient(metrics: Metrics): Scanner {
      const client = makeRemoteScanClient({
        remoteScans,
        contents,
        kinds,
        resultWaiters,
        notifications,
        reportFailure: (error) => log.warn({ err: error }, 'cannot clean up a remote scan; the sweeper will'),
      })
      metrics.gauge('assay_errands_waiting', 'Remote scans whose result this node waits for.', client.countWaiting)
      return client
    },
    /** For a node that scans. No other node can use the embedded database, so there are no remote scans on it. */
    openWorker(scanner: Scanner) {
      if (isAlone) return undefined
      const run = makeRunRemoteScan({
        remoteScans,
        contents,
        scanner,
        reportFailure: (error) => log.error({ err: error }, 'a remote scan for another node failed'),
        onCompleted: (id) => notifications.send('completed', id),
      })
      return openRemoteScanWorker({
        remoteScans,
        run,
        notifications,
        concurrency: remoteScansPerCore * availableParallelism(),
        log,
        isOutage: database.watch.isOutage,
      })
    },
    close: notifications.close,
  }
}

/**
 * A node that is alone on its embedded database sends nothing, because there is no other node. It listens, because
 * commands of the operator change lists, signatures and sources in processes of their own.
 */
function openNotificationsOf({ direct, pool }: Database, { isAlone, log }: { isAlone: boolean; log: Logger }) {
  const notifications = openNotifications({
    connector: direct.connector,
    pool,
    log,
    hasOwnAddress: direct.pool !== pool,
  })
  return isAlone ? { ...notifications, send: () => {} } : notifications
}
