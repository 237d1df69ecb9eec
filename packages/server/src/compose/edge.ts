import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config/load-config.ts'
import { findRegionConflict } from '../database/regions.ts'
import { makeTestWebhookStore } from '../database/test-webhooks.ts'
import { makeAdmission } from '../domain/accounts/admission.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { makeReadiness, type Readiness } from '../domain/readiness.ts'
import { makeScanning } from '../domain/scans/scanning.ts'
import { makeSubmitting } from '../domain/scans/submitting.ts'
import { makeDeliveryFeed } from '../domain/webhooks/delivery-feed.ts'
import { makeHttpServer, watchCertificate } from '../http/server.ts'
import type { Closers } from '../runtime/closers.ts'
import type { ServiceLogs } from '../runtime/logger.ts'
import { type Metrics, openMetricsServer } from '../runtime/metrics.ts'
import { version } from '../runtime/process.ts'
import { openHeartbeat } from '../workers/heartbeat.ts'
import type { BackgroundParts } from './background.ts'
import { openConsole } from './console.ts'
import { openListeners } from './listeners.ts'
import { type EngineStatus, listChecks, makeNodeInfo } from './monitoring.ts'
import type { ScanningParts } from './scanning.ts'
import type { StorageParts } from './storage.ts'

type Deps = {
  storage: StorageParts
  scanning: ScanningParts
  background: BackgroundParts
  isTest: boolean
  /** Aborted when draining starts: requests that wait for a result are answered with its present state. */
  draining: AbortSignal
  metrics: Metrics
  logs: ServiceLogs
  closers: Closers
}

/** Opens everything that listens: the clamd and ICAP listeners, the HTTP server with the console, and the metrics. */
export async function openEdge(config: Config, deps: Deps) {
  const { storage, scanning, isTest, metrics, closers } = deps
  const { log } = deps.logs
  const { engines } = scanning
  const node = {
    readiness: makeReadiness({ checks: listChecks(storage, scanning, isTest), timeoutMs: 3000 }),
    listEngines: (): EngineStatus[] =>
      (engines?.listEngines() ?? []).map((engine) => ({
        name: engine.name,
        kind: engine.kind,
        state: engine.findState(),
      })),
    roles: (['api', 'worker'] as const).filter((role) => config.roles[role]),
  }
  const useCases = makeUseCases(config, deps)
  const listeners = await openListeners(config, {
    admission: useCases.admission,
    gate: storage.gate,
    scanning: useCases.scanning,
    contents: useCases.contents,
    malware: engines?.malware,
    metrics,
    log,
    isTest,
  })
  closers.add(listeners.close)
  const site = openConsole(config, { ...deps, ...node, useCases, log })
  closers.add(site.close)
  const { app, url } = await openHttp(config, { ...deps, ...node, useCases, site })
  const heartbeat = openHeartbeat({
    nodes: storage.nodes,
    describe: makeNodeInfo({ ...node, clock: storage.database.clock, degradation: scanning.degradation }),
    log,
    isOutage: storage.database.watch.isOutage,
  })
  closers.add(heartbeat.close)
  const metricsServer = await openMetricsServer(metrics, {
    host: config.metricsHost,
    port: config.metricsPort ?? toMetricsPort(config.port),
  })
  closers.add(metricsServer.close)

  return {
    url,
    metricsPort: metricsServer.port,
    welcome: config.roles.api ? await site.welcomeFirstOperator() : undefined,
    /** Makes `/readyz` answer 503 while all listeners stay open. */
    startStopping: node.readiness.startStopping,
    /** Ends idle connections now and all others after `withinMs`. Returns a function that stops doing so. */
    startDraining(withinMs: number) {
      listeners.startStopping(withinMs)
      const deadline = setTimeout(() => app.server.closeAllConnections(), withinMs)
      // Closing the server ends connections that are idle at that moment; a keep-alive connection that answers later is
      // idle only then.
      const idle = setInterval(() => app.server.closeIdleConnections(), 50)
      return () => {
        clearTimeout(deadline)
        clearInterval(idle)
      }
    },
  }
}

/** Makes what the HTTP interface and the console do with scans. */
function makeUseCases(config: Config, { storage, scanning, background, metrics, logs }: Deps) {
  const { gate, recentCallers, jobContents } = storage
  const shared = { clock: storage.database.clock, region: config.region, gate, describe: scanning.describe }
  return {
    admission: makeAdmission({ gate, creditGate: config.creditGate, recentCallers }),
    scanning: makeScanning({
      ...shared,
      scans: storage.scans,
      repeats: storage.idempotency,
      scanner: scanning.scanner,
      resultWaiters: scanning.remoteScans.resultWaiters,
      observeVerdict: metrics.countVerdict,
      reportFailure: (error) => logs.log.error({ err: error }, 'a scan failed'),
    }),
    submitting: makeSubmitting({
      ...shared,
      kinds: scanning.kinds,
      degradation: scanning.degradation,
      contents: jobContents,
      testWebhooks: makeTestWebhookStore(storage.database, { maxPerDay: config.testWebhooks }),
      onQueued: background.onQueued,
    }),
    // Without engines on this node, workers scan the content: it must be stored where they can read it.
    contents: scanning.engines === undefined ? jobContents : storage.contents,
    jobContents,
    policy: scanning.outbound.policy,
    deliveryFeed: makeDeliveryFeed({
      deliveries: storage.deliveries,
      accounts: storage.accounts,
      clock: storage.database.clock,
    }),
  }
}

type HttpParts = Deps & {
  readiness: Readiness
  listEngines(): EngineStatus[]
  roles: string[]
  useCases: ReturnType<typeof makeUseCases>
  site: ReturnType<typeof openConsole>
}

async function openHttp(config: Config, parts: HttpParts) {
  const { storage, scanning, logs, metrics, useCases, site, closers } = parts
  const app = await makeHttpServer({
    ...useCases,
    accounts: storage.accounts,
    listEngines: parts.listEngines,
    roles: parts.roles,
    readiness: parts.readiness,
    clock: storage.database.clock,
    servesApi: config.roles.api,
    countWorkers: scanning.engines === undefined ? storage.nodes.countWorkers : undefined,
    countRejectedRequest: site.countRejectedRequest,
    registerMore: site.scopes,
    log: logs.log,
    logRequest: logs.logRequest,
    metrics,
    version,
    draining: parts.draining,
    maxConnections: Math.min(config.maxConnections, countConnectionsByFileLimit()),
    isOutage: storage.database.watch.isOutage,
    findConflict: findRegionConflict,
    region: config.region,
    isTest: parts.isTest,
    publicUrl: config.publicUrl,
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    tls: readCertificate(config),
  })
  const url = await app.listen({ host: config.host, port: config.port })
  closers.add(() => app.close())
  const { tlsCert: certFile, tlsKey: keyFile } = config
  if (certFile !== undefined && keyFile !== undefined) {
    closers.add(watchCertificate({ server: app.server, certFile, keyFile, log: logs.log }))
  }
  return { app, url }
}

const toMetricsPort = (port: number) => (port === 0 ? 0 : port + 1000 > 65535 ? port - 1000 : port + 1000)

/** Files kept for database and engine connections, pipes to child processes and listening sockets. */
const filesForOthers = 160

/** Connections that the limit of open files allows: one file for the socket, one for its content. */
function countConnectionsByFileLimit(): number {
  const limit = readFileLimit()
  return Math.max(1, Math.floor((limit - Math.min(filesForOthers, limit / 2)) / 2))
}

/** The limit of open files and sockets of this process. Node raises the soft limit to the hard limit at its start. */
function readFileLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(limits) ?? []
    return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

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
