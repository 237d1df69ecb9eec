import type { Config } from '../config/load-config.ts'
import type { Closers } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { openSweeper } from '../workers/sweeper.ts'
import { listCleanupTasks } from './cleanup-tasks.ts'
import { observeQueues } from './monitoring.ts'
import type { ScanningParts } from './scanning.ts'
import type { StorageParts } from './storage.ts'
import { openWorkers } from './workers.ts'

type Deps = {
  storage: StorageParts
  scanning: ScanningParts
  /** Time that running jobs may still take while the service stops. */
  countDrainMs(): number
  metrics: Metrics
  log: Logger
  closers: Closers
}

/** Opens the work that no request waits for: background scans, webhook deliveries and cleanup. */
export async function openBackground(config: Config, deps: Deps) {
  const { storage, scanning, countDrainMs, metrics, log, closers } = deps
  const workers = openWorkers(config, { storage, scanning, observeVerdict: metrics.countVerdict, log })
  closers.add(() => workers.close(countDrainMs()))
  observeQueues(metrics, { jobs: workers.jobs, deliveries: storage.deliveries })
  const sweeper = await openSweeper({
    cleanupTasks: listCleanupTasks(config, { storage, remoteScans: scanning.remoteScans.remoteScans, workers }),
    log,
    isOutage: storage.database.watch.isOutage,
  })
  closers.add(sweeper.close)
  return workers
}

export type BackgroundParts = Awaited<ReturnType<typeof openBackground>>
