import { availableParallelism } from 'node:os'
import type { ScanKind } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
import { openNotifications } from '../database/notifications.ts'
import type { Database } from '../database/open-database.ts'
import { makeRemoteScanStore } from '../database/remote-scan-store.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { Notifications } from '../domain/ports/notifications.ts'
import { makeRemoteScanClient } from '../domain/remote-scans/remote-scan-client.ts'
import { makeRunRemoteScan } from '../domain/remote-scans/run-remote-scan.ts'
import { listQueues } from '../domain/scans/jobs.ts'
import type { Scanner } from '../domain/scans/scanner.ts'
import { makeResultWaiters, type ResultWaiters } from '../domain/scans/scanning.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { openRemoteScanWorker } from '../workers/remote-scan-worker.ts'

type Deps = {
  database: Database
  contents: JobContents
  kinds: ScanKind[]
  log: Logger
}

/** As many as of background jobs, which step back for them. */
const remoteScansPerCore = 64

/** What nodes do for each other: words that wake, and looks that one asks of another. */
export function openRemoteScans(config: Config, { database, contents, kinds, log }: Deps) {
  const { databaseUrl } = config
  const notifications =
    databaseUrl === undefined ? makeSilence() : openNotifications({ url: databaseUrl, pool: database.pool, log })
  const resultWaiters = makeResultWaiters()
  notifications.on('completed', (ids) => ids.forEach(resultWaiters.notify))
  const remoteScans = makeRemoteScanStore({ ...database, queues: listQueues(kinds, contents.storeIds) })

  return {
    remoteScans,
    resultWaiters,
    notifications,
    /** For a node without engines: the end of a scan, as others find it. */
    makeRemoteScanClient(metrics: Metrics): Scanner {
      const asking = makeRemoteScanClient({
        ...{ remoteScans, contents, kinds, resultWaiters, notifications },
        reportFailure: (error) => log.warn({ err: error }, 'something of a remote scan is left for the sweeper'),
      })
      metrics.gauge('assay_errands_waiting', 'Scans that other nodes are asked for.', asking.countWaiting)
      return asking
    },
    /** For a node that scans. The database that comes with Assay is this node's own: nobody else could ask. */
    openWorker(scanner: Scanner) {
      if (databaseUrl === undefined) return undefined
      const run = makeRunRemoteScan({
        ...{ remoteScans, contents, scanner },
        reportFailure: (error) => log.error({ err: error }, 'a scan for another node failed'),
        onCompleted: (id) => notifications.send('completed', id),
      })
      const concurrency = remoteScansPerCore * availableParallelism()
      return openRemoteScanWorker({
        remoteScans,
        run,
        notifications,
        concurrency,
        log,
        isOutage: database.watch.isOutage,
      })
    },
    close: notifications.close,
  }
}

export type RemoteScans = {
  resultWaiters: ResultWaiters
  notifications: Notifications
  openWorker: ReturnType<typeof openRemoteScans>['openWorker']
}

/** Alone on its database: there is nobody to tell. */
const makeSilence = () => ({ send: () => {}, on: () => {}, isListening: () => true, close: async () => {} })
