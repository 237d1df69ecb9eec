import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config/load-config.ts'
import { openParts } from '../runtime/closers.ts'
import type { ServiceLogs } from '../runtime/logger.ts'
import { makeMetrics } from '../runtime/metrics.ts'
import { version } from '../runtime/process.ts'
import { openBackground } from './background.ts'
import { openEdge } from './edge.ts'
import { observeStalls } from './monitoring.ts'
import { openScanning } from './scanning.ts'
import { openStorage } from './storage.ts'
import type { Stores } from './stores.ts'

/** `stores` are closed with the service. With `isTest` no engine starts, and all keys are test keys. */
type Deps = { stores: Stores; isTest: boolean }

/**
 * Opens the whole service, listening. Parts are opened from the database up to the listeners, and closed in reverse.
 */
export const openService = (config: Config, logs: ServiceLogs, { stores, isTest }: Deps) =>
  openParts(async (closers) => {
    closers.add(stores.close)
    const { log } = logs
    const metrics = makeMetrics({ region: config.region, version })
    const draining = new AbortController()
    let drainEndsAt = 0
    const countDrainMs = () => Math.max(0, drainEndsAt - performance.now())

    const storage = await openStorage(config, { stores, metrics, log, closers })
    const scanning = await openScanning(config, { storage, isTest, metrics, log, closers })
    const background = await openBackground(config, { storage, scanning, countDrainMs, metrics, log, closers })
    const edge = await openEdge(config, {
      storage,
      scanning,
      background,
      isTest,
      draining: draining.signal,
      metrics,
      logs,
      closers,
    })

    observeStalls(metrics, closers)

    return {
      url: edge.url,
      metricsPort: edge.metricsPort,
      firstAccount: storage.firstAccount,
      welcome: edge.welcome,
      /** One sentence about what malware scans miss; undefined while nothing is missing. */
      degraded: scanning.degradation.find(),
      /**
       * Reports "unavailable" first while listeners stay open, so that load balancers can send requests elsewhere. Then
       * running requests and jobs may finish; at the deadline connections are cut and jobs are released to other
       * workers.
       */
      async close() {
        edge.startStopping()
        background.stopClaiming()
        await pause(config.drainDelaySeconds * 1000)
        draining.abort()
        const drainMs = config.drainSeconds * 1000
        drainEndsAt = performance.now() + drainMs
        const stopDraining = edge.startDraining(drainMs)
        await closers.closeAll().finally(stopDraining)
      },
    }
  })
