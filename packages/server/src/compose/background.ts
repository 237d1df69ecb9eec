import { availableParallelism } from 'node:os'
import type { ScanKind } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
import { makeJobStore } from '../database/job-store.ts'
import type { Database } from '../database/open-database.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { WebhookSender } from '../domain/ports/webhook-sender.ts'
import { listLanes } from '../domain/scans/lanes.ts'
import type { Outcomes } from '../domain/scans/outcome.ts'
import { makeRunJob } from '../domain/scans/run-job.ts'
import { makeDeliver } from '../domain/webhooks/deliver.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { openDeliveryWorker } from '../workers/delivery-worker.ts'
import { openScanWorker } from '../workers/scan-worker.ts'
import type { Errands } from './errands.ts'

type Deps = {
  database: Database
  contents: JobContents
  deliveries: DeliveryStore
  outcomes: Outcomes
  errands: Errands
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
  const { database, contents, outcomes, deliveries, observeVerdict, log } = deps
  const { bell, wakeUps, openWorker } = deps.errands
  const jobs = makeJobStore({ ...database, lanes: listLanes(deps.kinds, contents.places) })
  const { isOutage } = database.watch
  const { run, giveUp } = makeRunJob({
    ...{ jobs, contents, outcomes, clock: systemClock, observeVerdict },
    reportFailure: (error) => log.error({ err: error }, 'a background scan failed'),
    onSettled(scanId, isCalledBack) {
      bell.ring(scanId)
      wakeUps.tell('settled', scanId)
      if (isCalledBack) workers?.pokeDeliveries()
    },
  })
  const workers = config.roles.worker ? openWorkers() : undefined

  return {
    jobs,
    /** There is a new job, for whoever can do it. */
    onQueued: workers?.pokeScans ?? (() => wakeUps.tell('jobs')),
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
    const errandWorker = openWorker(outcomes)
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
      ...(errandWorker === undefined ? {} : { countOthers: errandWorker.countRunning }),
    })
    wakeUps.on('jobs', scanWorker.poke)
    return {
      pokeScans: scanWorker.poke,
      pokeDeliveries: deliveryWorker.poke,
      stopClaiming() {
        errandWorker?.stop()
        scanWorker.stop()
      },
      async close(withinMs: number) {
        await Promise.all([errandWorker?.close(withinMs), scanWorker.close(withinMs)])
        await deliveryWorker.close()
      },
    }
  }
}
