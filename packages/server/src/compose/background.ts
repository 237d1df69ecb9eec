import { availableParallelism } from 'node:os'
import type { ScanKind } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
import { makeJobStore } from '../database/job-store.ts'
import type { Database } from '../database/open-database.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { WebhookSender } from '../domain/ports/webhook-sender.ts'
import { listQueues, makeRunJob } from '../domain/scans/jobs.ts'
import type { Scanner } from '../domain/scans/scanner.ts'
import { makeDeliver } from '../domain/webhooks/deliver.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { openDeliveryWorker } from '../workers/delivery-worker.ts'
import { openScanWorker } from '../workers/scan-worker.ts'
import type { RemoteScans } from './remote-scans.ts'

type Deps = {
  database: Database
  contents: JobContents
  deliveries: DeliveryStore
  scanner: Scanner
  remoteScans: RemoteScans
  kinds: ScanKind[]
  sender: WebhookSender
  observeVerdict(kind: ScanKind, status: string, isTest: boolean): void
  log: Logger
}

/** Many more than run at a time: most of a small scan is waiting for the engine and the database. */
export const jobsPerCore = 64

const abandonedAtOnce = 100
const abandonedLeaseMs = 60_000

/** What is done after the answer: background scans, and the webhooks that tell of them. */
export function openBackground(config: Config, deps: Deps) {
  const { database, contents, scanner, deliveries, observeVerdict, log } = deps
  const { resultWaiters, notifications, openWorker } = deps.remoteScans
  const jobs = makeJobStore({ ...database, queues: listQueues(deps.kinds, contents.storeIds) })
  const { isOutage } = database.watch
  const { run, giveUp } = makeRunJob({
    ...{ jobs, contents, scanner, clock: systemClock, observeVerdict },
    reportFailure: (error) => log.error({ err: error }, 'a background scan failed'),
    onCompleted(scanId, isCalledBack) {
      resultWaiters.notify(scanId)
      notifications.send('completed', scanId)
      if (isCalledBack) workers?.pokeDeliveries()
    },
  })
  const workers = config.roles.worker ? openWorkers() : undefined

  return {
    jobs,
    /** There is a new job, for whoever can do it. */
    onQueued: workers?.pokeScans ?? (() => notifications.send('jobs')),
    /** A delivery is due; without workers here, others find it by looking. */
    onReplayed: () => workers?.pokeDeliveries(),
    /** Settles jobs that nobody has taken since before that time; says how many. */
    async giveUpAbandoned(before: Date): Promise<number> {
      const abandoned = await jobs.claimAbandoned(before, abandonedAtOnce, abandonedLeaseMs)
      for (const job of abandoned) await giveUp(job)
      return abandoned.length
    },
    stopClaiming: () => workers?.stopClaiming(),
    close: async (withinMs: number) => workers?.close(withinMs),
  }

  function openWorkers() {
    const remoteScanWorker = openWorker(scanner)
    const deliver = makeDeliver({
      sender: deps.sender,
      store: deliveries,
      clock: systemClock,
      retryMs: config.webhookRetries,
    })
    const deliveryWorker = openDeliveryWorker({ store: deliveries, deliver, log, clock: systemClock, isOutage })
    const concurrency = jobsPerCore * availableParallelism()
    const scanWorker = openScanWorker({
      ...{ jobs, run, concurrency, log, isOutage },
      ...(remoteScanWorker === undefined ? {} : { countOthers: remoteScanWorker.countRunning }),
    })
    notifications.on('jobs', scanWorker.poke)
    return {
      pokeScans: scanWorker.poke,
      pokeDeliveries: deliveryWorker.poke,
      stopClaiming() {
        remoteScanWorker?.stop()
        scanWorker.stop()
      },
      async close(withinMs: number) {
        await Promise.all([remoteScanWorker?.close(withinMs), scanWorker.close(withinMs)])
        await deliveryWorker.close()
      },
    }
  }
}
