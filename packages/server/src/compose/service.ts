import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createSecureContext } from 'node:tls'
import type { ScanKind } from '@assay/contract'
import { openContentStore } from '../blobs/content-store.ts'
import { makeJobContents } from '../blobs/job-contents.ts'
import { openMasterKey } from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import { makeAdmissionGate } from '../database/admission-gate.ts'
import { makeIdempotencyStore } from '../database/idempotency-store.ts'
import { makeScanStore } from '../database/scan-store.ts'
import { makeAdmission } from '../domain/accounts/admission.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { makeReadiness } from '../domain/readiness.ts'
import { makeAssess } from '../domain/scans/assess.ts'
import { makeDownload } from '../domain/scans/download.ts'
import { makeOutcomes } from '../domain/scans/outcome.ts'
import { makeScanning } from '../domain/scans/scanning.ts'
import { makeSubmitting } from '../domain/scans/submitting.ts'
import { makeHttpServer } from '../http/server.ts'
import { watchCertificate } from '../http/watch-certificate.ts'
import { systemClock } from '../runtime/clock.ts'
import { newClosers } from '../runtime/closers.ts'
import type { ServiceLogs } from '../runtime/logger.ts'
import { makeMetrics, openMetricsServer } from '../runtime/metrics.ts'
import { version } from '../runtime/version.ts'
import { openSweeper } from '../workers/sweeper.ts'
import { openBackground } from './background.ts'
import { openBounds } from './bounds.ts'
import { listChores } from './chores.ts'
import { openImages } from './images.ts'
import { openMalware } from './malware.ts'
import { openOffice } from './office.ts'
import { makeOutbound } from './outbound.ts'
import { listChecks, observeBounds, observeDatabase, observeEngines, observeQueues } from './watch.ts'

/** The whole service, listening. Every part is built here, from the ground up; closing goes the other way. */
export async function openService(config: Config, { log, logRequest }: ServiceLogs) {
  const closers = newClosers()
  const draining = new AbortController()
  let drainedByMs = 0
  try {
    const office = await openOffice(config, 'service', log)
    closers.add(office.close)
    const { database, accounts, registration, deliveries } = office
    const first = await registration.registerFirst({
      name: 'first account',
      plan: 'unlimited',
      ...(config.bootstrapKey === undefined ? {} : { apiKey: config.bootstrapKey }),
      ...(config.bootstrapWebhookSecret === undefined ? {} : { webhookSecret: config.bootstrapWebhookSecret }),
    })

    const master = openMasterKey(config.masterKey, config.dataDir)
    const dataDir = resolve(config.dataDir)
    const { memory, room, jobRoom, maxConnections } = await openBounds(config, dataDir)
    const contents = openContentStore({ dir: join(dataDir, 'content'), master, memory, room })
    closers.add(contents.close)
    const jobContents = makeJobContents({ dir: join(dataDir, 'jobs'), master, memory, room: jobRoom })
    // Both at once: each waits for processes of its own.
    const opening = openImages(config, { log })
    closers.add(async () => (await opening).close())
    const malware = await openMalware(config, { contents, log, as: 'service' })
    closers.add(malware.close)
    const engines = { malware, images: await opening }

    const metrics = makeMetrics({ region: config.region, version })
    observeDatabase(metrics, database)
    observeEngines(metrics, engines)
    observeBounds(metrics, { memory, room })
    const gate = makeAdmissionGate({
      pool: database.pool,
      observeBatch: metrics.observeBatch,
      isAway: database.watch.isAway,
      onOutage: database.watch.suspect,
    })
    const scans = makeScanStore(database)
    const repeats = makeIdempotencyStore(database)
    const { policy, fetcher, sender } = makeOutbound(config)
    const { describe } = malware
    const outcomes = makeOutcomes({
      describe,
      assess: makeAssess({ malware: malware.malware, images: engines.images.images }),
      download: makeDownload({ fetcher, contents, findDownloadHosts: accounts.findDownloadHosts }),
    })
    const shared = { clock: systemClock, region: config.region, gate, describe }
    const observeVerdict = metrics.countVerdict
    const kinds: ScanKind[] = config.nsfwProfile === 'off' ? ['malware'] : ['malware', 'nsfw_image']
    const background = openBackground(config, {
      ...{ database, kinds, contents: jobContents, deliveries, outcomes, sender, observeVerdict, log },
    })
    closers.add(() => background.close(Math.max(0, drainedByMs - performance.now())))
    observeQueues(metrics, { jobs: background.jobs, deliveries })
    const sweeper = await openSweeper({
      chores: listChores({
        ...{ contents, jobContents, scans, deliveries, repeats, resultDays: config.resultDays },
        jobs: background.jobs,
        giveUpAbandoned: background.giveUpAbandoned,
      }),
      log,
      isOutage: database.watch.isOutage,
    })
    closers.add(sweeper.close)
    const readiness = makeReadiness({ checks: listChecks(database, engines, jobRoom), timeoutMs: 3000 })
    const listEngines = () => [...malware.listEngines(), ...engines.images.listEngines()]

    const app = await makeHttpServer({
      admission: makeAdmission({ gate, creditGate: config.creditGate, clock: systemClock }),
      accounts,
      scanning: makeScanning({
        ...{ ...shared, scans, repeats, outcomes, bell: background.bell, observeVerdict },
        reportFailure: (error) => log.error({ err: error }, 'a scan failed'),
      }),
      submitting: makeSubmitting({ ...shared, kinds, contents: jobContents, onQueued: background.onQueued }),
      ...{ contents, jobContents, policy },
      listEngines: () => listEngines().map((engine) => ({ name: engine.name, state: engine.findState() })),
      ...{ log, logRequest, metrics, readiness, version },
      draining: draining.signal,
      maxConnections,
      isOutage: database.watch.isOutage,
      region: config.region,
      publicUrl: config.publicUrl,
      corsOrigins: config.corsOrigins,
      tls: readCertificate(config),
    })
    const url = await app.listen({ host: config.host, port: config.port })
    closers.add(() => app.close())
    if (config.tlsCert !== undefined && config.tlsKey !== undefined) {
      closers.add(watchCertificate({ server: app.server, certFile: config.tlsCert, keyFile: config.tlsKey, log }))
    }
    const metricsServer = await openMetricsServer(metrics, config.metricsPort ?? toMetricsPort(config.port))
    closers.add(metricsServer.close)

    return {
      url,
      first,
      metricsPort: metricsServer.port,
      /**
       * Red first, while the door stays open: balancers need a moment to look elsewhere. Then running requests and jobs
       * may finish. What is not done by the deadline is cut off, or given back to be done by another.
       */
      async close() {
        readiness.startStopping()
        background.stopClaiming()
        await pause(config.drainDelaySeconds * 1000)
        draining.abort()
        const drainMs = config.drainSeconds * 1000
        drainedByMs = performance.now() + drainMs
        const deadline = setTimeout(() => app.server.closeAllConnections(), drainMs)
        // A connection whose answer went out after the stop began stays open for its next request: nobody else ends it.
        const idle = setInterval(() => app.server.closeIdleConnections(), 50)
        await closers.closeAll().finally(() => {
          clearTimeout(deadline)
          clearInterval(idle)
        })
      },
    }
  } catch (error) {
    await closers.closeAll()
    throw error
  }
}

const toMetricsPort = (port: number) => (port === 0 ? 0 : port + 1000 > 65535 ? port - 1000 : port + 1000)

function readCertificate({ tlsCert, tlsKey }: Config) {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  try {
    const pair = { cert: readFileSync(tlsCert, 'utf8'), key: readFileSync(tlsKey, 'utf8') }
    createSecureContext(pair)
    return pair
  } catch (error) {
    const { message } = error as Error
    throw new OperatorMistake(`ASSAY_TLS_CERT and ASSAY_TLS_KEY cannot be used: ${message}.`, { cause: error })
  }
}
