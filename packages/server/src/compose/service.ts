import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createSecureContext } from 'node:tls'
import type { ScanKind } from '@assay/contract'
import { openContentStore } from '../blobs/content-store.ts'
import { openMasterKey } from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import { makeAdmissionGate } from '../database/admission-gate.ts'
import { makeIdempotencyStore } from '../database/idempotency-store.ts'
import { makeBalanceOpener } from '../database/regions/open-balances.ts'
import { isSatellite } from '../database/regions/satellite-region.ts'
import { makeScanStore } from '../database/scan-store.ts'
import { makeAdmission, makeRecentCallers } from '../domain/accounts/admission.ts'
import { makeDescriber } from '../domain/content/media-type.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { makeReadiness } from '../domain/readiness.ts'
import { makeDownload, makeScanner } from '../domain/scans/scanner.ts'
import { makeScanning } from '../domain/scans/scanning.ts'
import { makeSubmitting } from '../domain/scans/submitting.ts'
import { withLists } from '../domain/scans/verdict.ts'
import { withTestKeys } from '../domain/test-mode.ts'
import { makeHttpServer, watchCertificate } from '../http/server.ts'
import { systemClock } from '../runtime/clock.ts'
import { newClosers } from '../runtime/closers.ts'
import type { ServiceLogs } from '../runtime/logger.ts'
import { makeMetrics, openMetricsServer } from '../runtime/metrics.ts'
import { version } from '../runtime/version.ts'
import { openHeartbeat } from '../workers/heartbeat.ts'
import { openSweeper } from '../workers/sweeper.ts'
import { openBackground } from './background.ts'
import { openBounds } from './bounds.ts'
import { listCleanupTasks } from './cleanup-tasks.ts'
import { openConsole, openListed } from './console.ts'
import { listConsoleCleanupTasks } from './console-cleanup-tasks.ts'
import { openEngines } from './engines.ts'
import { openJobContents } from './job-contents.ts'
import { openListeners } from './listeners.ts'
import { listRoles, makeNodeInfo } from './node-info.ts'
import { makeOutbound } from './outbound.ts'
import { openRemoteScans } from './remote-scans.ts'
import type { Stores } from './stores.ts'
import { listChecks, observeBounds, observeDatabase, observeEngines, observeQueues } from './watch.ts'

/** With `isTest` there are no engines: all its keys are for tests. The office is the service's, which closes it. */
type Given = { stores: Stores; isTest: boolean }

/** The whole service, listening. Every part is built here, from the ground up; closing goes the other way. */
export async function openService(config: Config, { log, logRequest }: ServiceLogs, { stores, isTest }: Given) {
  const closers = newClosers()
  const draining = new AbortController()
  let drainedByMs = 0
  closers.add(stores.close)
  try {
    const { database, accounts, registration, deliveries, nodes } = stores
    // A worker knows nothing of keys: it must not make the first one before a node that was given it.
    const first = config.roles.api ? await registerFirst(config, registration) : undefined

    const metrics = makeMetrics({ region: config.region, version })
    const master = openMasterKey(config.masterKey, config.dataDir)
    const dataDir = resolve(config.dataDir)
    const { memory, disk, jobDisk, maxConnections } = await openBounds(config, dataDir)
    const contents = openContentStore({ dir: join(dataDir, 'content'), master, memory, disk })
    closers.add(contents.close)
    const jobStorage = await openJobContents(config, { master, metrics, log, memory, disk: jobDisk })
    closers.add(jobStorage.close)
    const jobContents = jobStorage.contents
    const engines = isTest || config.roles.worker ? await openEngines(config, { contents, log, isTest }) : undefined
    if (engines !== undefined) closers.add(engines.close)

    observeDatabase(metrics, database)
    if (engines !== undefined) observeEngines(metrics, engines)
    observeBounds(metrics, { memory, disk })
    const openBalances = (await isSatellite(database.pool)) ? makeBalanceOpener(database.pool) : undefined
    const recentCallers = makeRecentCallers({ clock: systemClock })
    const gate = recentCallers.watch(
      makeAdmissionGate({
        ...{ pool: database.pool, observeBatch: metrics.observeBatch, openBalances },
        isAway: database.watch.isAway,
        onOutage: database.watch.suspect,
      }),
    )
    const scans = makeScanStore(database)
    const repeats = makeIdempotencyStore(database)
    const { policy, fetcher, sender } = makeOutbound(config)
    const describe = makeDescriber({ entries: config.verdictCache })
    const kinds: ScanKind[] = isTest ? [] : config.nsfwProfile === 'off' ? ['malware'] : ['malware', 'nsfw_image']
    const remoteScans = openRemoteScans(config, { database, contents: jobContents, kinds, log })
    closers.add(remoteScans.close)
    const lists = await openListed(database, log)
    closers.add(lists.close)
    const live =
      engines === undefined
        ? remoteScans.makeRemoteScanClient(metrics)
        : makeScanner({
            describe,
            assess: withLists(engines.assess, lists.listCurrent),
            download: makeDownload({ fetcher, contents, findDownloadHosts: accounts.findDownloadHosts }),
          })
    const scanner = withTestKeys(live, { describe })
    const shared = { clock: systemClock, region: config.region, gate, describe }
    const observeVerdict = metrics.countVerdict
    const background = openBackground(config, {
      ...{ database, kinds, contents: jobContents, deliveries, scanner, remoteScans, sender, observeVerdict, log },
    })
    closers.add(() => background.close(Math.max(0, drainedByMs - performance.now())))
    observeQueues(metrics, { jobs: background.jobs, deliveries })
    const sweeper = await openSweeper({
      cleanupTasks: [
        ...listConsoleCleanupTasks(database),
        ...listCleanupTasks({
          ...{ contents, jobContents, scans, deliveries, repeats, nodes, resultDays: config.resultDays, openBalances },
          jobs: background.jobs,
          remoteScans: remoteScans.remoteScans,
          giveUpAbandoned: background.giveUpAbandoned,
        }),
        ...jobStorage.cleanupTasks,
      ],
      log,
      isOutage: database.watch.isOutage,
    })
    closers.add(sweeper.close)
    const checks = [
      ...listChecks(database, {
        disk: jobDisk,
        engines: isTest ? undefined : engines,
        nodes: engines === undefined ? nodes : undefined,
      }),
      ...jobStorage.checks,
    ]
    const readiness = makeReadiness({ checks, timeoutMs: 3000 })
    const listEngines = () =>
      (engines?.listEngines() ?? []).map((engine) => ({
        name: engine.name,
        kind: engine.kind,
        state: engine.findState(),
      }))
    const roles = listRoles(config)

    const admission = makeAdmission({ gate, creditGate: config.creditGate, recentCallers })
    const scanning = makeScanning({
      ...{ ...shared, scans, repeats, scanner, resultWaiters: remoteScans.resultWaiters, observeVerdict },
      reportFailure: (error) => log.error({ err: error }, 'a scan failed'),
    })
    // Content that others are to look at must be where they can read it.
    const syncContents = engines === undefined ? jobContents : contents
    const listeners = await openListeners(config, {
      ...{ admission, gate, scanning, contents: syncContents, malware: engines?.malware, metrics, log, isTest },
    })
    closers.add(listeners.close)

    const doing = {
      ...{ admission, scanning, contents: syncContents, jobContents, policy },
      submitting: makeSubmitting({ ...shared, kinds, contents: jobContents, onQueued: background.onQueued }),
    }
    const site = openConsole(config, {
      ...{ stores, isTest, lists, doing, sender, background, readiness, metrics, listEngines, roles, log },
      malware: engines?.malware,
      assess: engines?.assess ?? live.scanContent,
    })
    closers.add(site.close)
    const app = await makeHttpServer({
      ...{ ...doing, accounts, listEngines, roles, servesApi: config.roles.api },
      countWorkers: engines === undefined ? nodes.countWorkers : undefined,
      countRejectedRequest: site.countRejectedRequest,
      registerMore: site.scopes,
      ...{ log, logRequest, metrics, readiness, version },
      draining: draining.signal,
      ...{ maxConnections, isOutage: database.watch.isOutage },
      ...{ region: config.region, isTest },
      publicUrl: config.publicUrl,
      corsOrigins: config.corsOrigins,
      tls: readCertificate(config),
    })
    const url = await app.listen({ host: config.host, port: config.port })
    closers.add(() => app.close())
    if (config.tlsCert !== undefined && config.tlsKey !== undefined) {
      closers.add(watchCertificate({ server: app.server, certFile: config.tlsCert, keyFile: config.tlsKey, log }))
    }
    const { isOutage } = database.watch
    const heartbeat = openHeartbeat({
      ...{ nodes, describe: makeNodeInfo({ roles, readiness, listEngines }), log, isOutage },
    })
    closers.add(heartbeat.close)
    const metricsServer = await openMetricsServer(metrics, {
      host: config.metricsHost,
      port: config.metricsPort ?? toMetricsPort(config.port),
    })
    closers.add(metricsServer.close)

    return {
      url,
      first,
      welcome: config.roles.api ? await site.inviteFirstOperator() : undefined,
      metricsPort: metricsServer.port,
      /**
       * Red first, while the listener stays open: balancers need a moment to look elsewhere. Then running requests and jobs
       * may finish. What is not done by the deadline is cut off, or given back to be done by another.
       */
      async close() {
        readiness.startStopping()
        background.stopClaiming()
        await pause(config.drainDelaySeconds * 1000)
        draining.abort()
        const drainMs = config.drainSeconds * 1000
        drainedByMs = performance.now() + drainMs
        listeners.startStopping(drainMs)
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

const registerFirst = (config: Config, registration: Stores['registration']) =>
  registration.registerFirst({
    name: 'first account',
    plan: 'unlimited',
    ...(config.bootstrapKey === undefined ? {} : { apiKey: config.bootstrapKey }),
    ...(config.bootstrapWebhookSecret === undefined ? {} : { webhookSecret: config.bootstrapWebhookSecret }),
  })

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
