import { availableParallelism } from 'node:os'
import type { ScanKind } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
import { makeErrandStore } from '../database/errand-store.ts'
import type { Database } from '../database/open-database.ts'
import { openWakeUps } from '../database/wake-ups.ts'
import { makeAsking } from '../domain/errands/asking.ts'
import { makeRunErrand } from '../domain/errands/run-errand.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { WakeUps } from '../domain/ports/wake-ups.ts'
import { type Bell, makeBell } from '../domain/scans/bell.ts'
import { listLanes } from '../domain/scans/lanes.ts'
import type { Outcomes } from '../domain/scans/outcome.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { openErrandWorker } from '../workers/errand-worker.ts'

type Deps = {
  database: Database
  contents: JobContents
  kinds: ScanKind[]
  log: Logger
}

/** As many as of background jobs, which step back for them. */
const errandsPerCore = 64

/** What nodes do for each other: words that wake, and looks that one asks of another. */
export function openErrands(config: Config, { database, contents, kinds, log }: Deps) {
  const { databaseUrl } = config
  const wakeUps =
    databaseUrl === undefined ? makeSilence() : openWakeUps({ url: databaseUrl, pool: database.pool, log })
  const bell = makeBell()
  wakeUps.on('settled', (ids) => ids.forEach(bell.ring))
  const errands = makeErrandStore({ ...database, lanes: listLanes(kinds, contents.places) })

  return {
    errands,
    bell,
    wakeUps,
    /** For a node without engines: the end of a scan, as others find it. */
    makeAsking(metrics: Metrics): Outcomes {
      const asking = makeAsking({
        ...{ errands, contents, kinds, bell, wakeUps },
        reportFailure: (error) => log.warn({ err: error }, 'something of an errand is left for the sweeper'),
      })
      metrics.gauge('assay_errands_waiting', 'Scans that other nodes are asked for.', asking.countWaiting)
      return asking
    },
    /** For a node that scans. The database that comes with Assay is this node's own: nobody else could ask. */
    openWorker(outcomes: Outcomes) {
      if (databaseUrl === undefined) return undefined
      const run = makeRunErrand({
        ...{ errands, contents, outcomes },
        reportFailure: (error) => log.error({ err: error }, 'a scan for another node failed'),
        onEnded: (id) => wakeUps.tell('settled', id),
      })
      const concurrency = errandsPerCore * availableParallelism()
      return openErrandWorker({ errands, run, wakeUps, concurrency, log, isOutage: database.watch.isOutage })
    },
    close: wakeUps.close,
  }
}

export type Errands = { bell: Bell; wakeUps: WakeUps; openWorker: ReturnType<typeof openErrands>['openWorker'] }

/** Alone on its database: there is nobody to tell. */
const makeSilence = () => ({ tell: () => {}, on: () => {}, isListening: () => true, close: async () => {} })
