import { availableParallelism } from 'node:os'
import type { ScanKind } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
import { makeJobStore } from '../database/job-store.ts'
import type { Database } from '../database/open-database.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { WebhookSender } from '../domain/ports/webhook-sender.ts'
import { makeBell } from '../domain/scans/bell.ts'
import { listLanes } from '../domain/scans/lanes.ts'
import type { Outcomes } from '../domain/scans/outcome.ts'
import { makeRunJob } from '../domain/scans/run-job.ts'
import { makeDeliver } from '../domain/webhooks/deliver.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { openDeliveryWorker } from '../workers/delivery-worker.ts'
import { openScanWorker } from '../workers/scan-worker.ts'

type Deps = {
  database: Database
  contents: JobContents
  deliveries: DeliveryStore
  outcomes: Outcomes
  kinds: ScanKind[]
  sender: WebhookSender
  observeVerdict(kind: ScanKind, status: string): void
  log: Logger
}

/** Many more than run at a time: most of a small scan is waiting for the engine and the database. */
const jobsPerCore = 64

const abandonedAtOnce = 100
const abandonedLeaseMs = 60_000

/** What is done after the answer: background scans, and the webhooks that tell of them. */
export function openBackground(config: Config, deps: Deps) {
  const { database, contents, outcomes, deliveries, observeVerdict, log } = deps
  const jobs = makeJobStore({ ...database, lanes: listLanes(deps.kinds, contents.places) })
  const bell = makeBell()
  const { isOutage } = database.watch
  const deliver = makeDeliver({
    sender: deps.sender,
    store: deliveries,
    clock: systemClock,
    retryMs: config.webhookRetries,
  })
  const deliveryWorker = openDeliveryWorker({ store: deliveries, deliver, log, clock: systemClock, isOutage })
  const { run, giveUp } = makeRunJob({
    ...{ jobs, contents, outcomes, clock: systemClock, observeVerdict },
    reportFailure: (error) => log.error({ err: error }, 'a background scan failed'),
    onSettled(scanId, isCalledBack) {
      bell.ring(scanId)
      if (isCalledBack) deliveryWorker.poke()
    },
  })
  const concurrency = jobsPerCore * availableParallelism()
  const scanWorker = openScanWorker({ jobs, run, concurrency, log, isOutage })

  return {
    jobs,
    bell,
    onQueued: scanWorker.poke,
    /** Settles jobs that nobody has taken since before that time; says how many. */
    async giveUpAbandoned(before: Date): Promise<number> {
      const abandoned = await jobs.claimAbandoned(before, abandonedAtOnce, abandonedLeaseMs)
      for (const job of abandoned) await giveUp(job)
      return abandoned.length
    },
    stopClaiming: scanWorker.stop,
    async close(withinMs: number) {
      await scanWorker.close(withinMs)
      await deliveryWorker.close()
    },
  }
}
