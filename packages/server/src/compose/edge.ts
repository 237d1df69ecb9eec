import { availableParallelism } from 'node:os'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/load-config.ts'
import { makeTestWebhookStore } from '../database/delivery-store.ts'
import { findRegionConflict } from '../database/regions.ts'
import { makeAdmission } from '../domain/accounts/admission.ts'
import { makeReadiness, type Readiness } from '../domain/readiness.ts'
import { makeReceipts } from '../domain/receipts.ts'
import { makeScanning } from '../domain/scans/scanning.ts'
import { makeSubmitting } from '../domain/scans/submitting.ts'
import { makeDeliveryFeed } from '../domain/webhooks/delivery-feed.ts'
import { makeWrongKeyLimit } from '../http/admission.ts'
import { type HealthDeps, registerHealth } from '../http/health.ts'
import { registerPages, registerReceiptKeys } from '../http/pages.ts'
import { makeHttpServer } from '../http/server.ts'
import type { Closers } from '../runtime/closers.ts'
import type { Logger, ServiceLogs } from '../runtime/logger.ts'
import { type Metrics, openMetricsServer } from '../runtime/metrics.ts'
import { version } from '../runtime/process.ts'
import { openHeartbeat } from '../workers/periodic-work.ts'
import type { BackgroundParts } from './background.ts'
import {
  countConnectionsByFileLimit,
  countHttpProcesses,
  type HttpListener,
  readCertificate,
  watchHttpCertificate,
} from './connections.ts'
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
        external: 'external' in engine ? engine.external : undefined,
      })),
    roles: (['api', 'worker'] as const).filter((role) => config.roles[role]),
  }
  const useCases = makeUseCases(config, deps)
  const listeners = await openListeners(config, {
    admission: useCases.admission,
    gate: storage.gate,
    accounts: storage.accounts,
    scanning: useCases.scanning,
    contents: useCases.contents,
    malware: engines?.malware,
    metrics,
    log,
    isTest,
  })
  closers.add(listeners.close)
  const site = openConsole(config, { ...deps, ...node, useCases, listListeners: listeners.list, log })
  closers.add(site.close)
  const listenerConnections = listeners.maxConnections
  const http = await openHttp(config, { ...deps, ...node, useCases, site, listenerConnections })
  const heartbeat = openHeartbeat({
    nodes: storage.nodes,
    describe: makeNodeInfo({
      ...node,
      findDiskWarning: storage.jobDisk.findWarning,
      clock: storage.database.clock,
      degradation: scanning.degradation,
    }),
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
    url: http.url,
    metricsPort: metricsServer.port,
    welcome: config.roles.api ? await site.welcomeFirstOperator() : undefined,
    /** Makes `/readyz` answer 503 while all listeners stay open. */
    startStopping() {
      node.readiness.startStopping()
      http.startStopping()
    },
    /** Ends idle connections now and all others after `withinMs`. Returns a function that stops doing so. */
    startDraining(withinMs: number) {
      listeners.startStopping(withinMs)
      return http.startDraining(withinMs)
    },
  }
}

/** Makes what the HTTP interface and the console do with scans. */
function makeUseCases(config: Config, { storage, scanning, background, metrics, logs }: Deps) {
  const { gate, recentCallers, jobContents } = storage
  const shared = { clock: storage.database.clock, region: config.region, gate, describe: scanning.describe }
  const scans = makeScanning({
    ...shared,
    scans: storage.scans,
    repeats: storage.idempotency,
    scanner: scanning.scanner,
    resultWaiters: scanning.remoteScans.resultWaiters,
    // Workers scan for a node without engines: it does not know how busy they are.
    fullLoad: scanning.engines === undefined ? Infinity : 2 * availableParallelism(),
    observeVerdict: metrics.countVerdict,
    reportFailure: (error) => logs.log.error({ err: error }, 'a scan failed'),
  })
  return {
    admission: makeAdmission({ gate, creditGate: config.creditGate, recentCallers }),
    scanning: scans,
    receipts: makeReceipts({
      scanning: scans,
      keys: storage.receiptKeys,
      clock: storage.database.clock,
      publicUrl: config.publicUrl,
      getInstallationId: async () => (await storage.sealing.getKey()).installationId,
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
  /** Connections that listeners may hold, which need files too. */
  listenerConnections: number
}

async function openHttp(config: Config, parts: HttpParts): Promise<HttpListener> {
  const { storage, logs, metrics, useCases, site, closers } = parts
  const processes = countHttpProcesses(config)
  const wrongKeys = makeWrongKeyLimit()
  const { countRejectedRequest } = site
  const app = await makeHttpServer({
    ...useCases,
    wrongKeys,
    accounts: storage.accounts,
    servesApi: config.roles.api,
    scopes: listScopes(config, parts),
    countRejectedRequest,
    log: logs.log,
    logRequest: logs.logRequest,
    metrics,
    stopping: parts.readiness.stopping,
    draining: parts.draining,
    maxConnections: Math.min(config.maxConnections, countConnectionsByFileLimit() - parts.listenerConnections),
    isOutage: storage.database.watch.isOutage,
    findConflict: findRegionConflict,
    region: config.region,
    publicUrl: config.publicUrl,
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    tls: readCertificate(config),
    isBehindProcesses: processes > 1,
  })
  if (processes === 1) return listenHere(config, { app, log: logs.log, closers })
  // Imported here, because most services are one process.
  const { listenInProcesses } = await import('./http-process/listen-in-processes.ts')
  const calls = {
    ...useCases,
    gate: storage.gate,
    accounts: storage.accounts,
    scansRemotely: parts.scanning.engines === undefined,
    wrongKeys,
    countRejectedRequest,
  }
  const { isOutage } = storage.database.watch
  return listenInProcesses(config, { app, processes, calls, isOutage, metrics, log: logs.log, closers })
}

/** Lists the routes beside `/v1`. A worker serves its health checks only. */
function listScopes(config: Config, parts: HttpParts): ((scope: FastifyInstance) => void)[] {
  const { storage, scanning, site, isTest } = parts
  const health: HealthDeps = {
    readiness: parts.readiness,
    listEngines: parts.listEngines,
    roles: parts.roles,
    countWorkers: scanning.engines === undefined ? storage.nodes.countWorkers : undefined,
    clock: storage.database.clock,
    region: config.region,
    version,
    isTest,
  }
  const scopes = [(scope: FastifyInstance) => registerHealth(scope, health)]
  const registerKeys = (scope: FastifyInstance) => registerReceiptKeys(scope, storage.receiptKeys)
  return config.roles.api ? [...scopes, registerPages, registerKeys, ...site.scopes] : scopes
}

async function listenHere(
  config: Config,
  { app, log, closers }: { app: FastifyInstance; log: Logger; closers: Closers },
): Promise<HttpListener> {
  const url = await app.listen({ host: config.host, port: config.port })
  closers.add(() => app.close())
  closers.add(watchHttpCertificate(config, app.server, log))
  return {
    url,
    startStopping() {},
    startDraining(withinMs) {
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

const toMetricsPort = (port: number) => (port === 0 ? 0 : port + 1000 > 65535 ? port - 1000 : port + 1000)
