import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { openContentStore } from '../blobs/content-store.ts'
import { openMasterKey } from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import { makeAdmissionGate } from '../database/admission-gate.ts'
import type { Database } from '../database/open-database.ts'
import { makeScanStore } from '../database/scan-store.ts'
import { makeAdmission } from '../domain/accounts/admission.ts'
import type { ScanStore } from '../domain/ports/scan-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { type Check, makeReadiness } from '../domain/readiness.ts'
import { makeAddressPolicy } from '../domain/scans/public-address.ts'
import { makeScanning } from '../domain/scans/scanning.ts'
import { makeHttpServer } from '../http/server.ts'
import { watchCertificate } from '../http/watch-certificate.ts'
import { systemClock } from '../runtime/clock.ts'
import { newClosers } from '../runtime/closers.ts'
import type { ServiceLogs } from '../runtime/logger.ts'
import { type Metrics, makeMetrics, openMetricsServer } from '../runtime/metrics.ts'
import { version } from '../runtime/version.ts'
import { type Chore, openSweeper } from '../workers/sweeper.ts'
import { openMalware } from './malware.ts'
import { openOffice } from './office.ts'

/** The whole service, listening. Every part is built here, from the ground up; closing goes the other way. */
export async function openService(config: Config, { log, logRequest }: ServiceLogs) {
  const closers = newClosers()
  try {
    const office = await openOffice(config, 'service', log)
    closers.add(office.close)
    const { database, accounts, registration } = office
    const first = await registration.registerFirst({
      name: 'first account',
      plan: 'unlimited',
      ...(config.bootstrapKey === undefined ? {} : { apiKey: config.bootstrapKey }),
      ...(config.bootstrapWebhookSecret === undefined ? {} : { webhookSecret: config.bootstrapWebhookSecret }),
    })

    const contents = openContentStore({
      dir: join(resolve(config.dataDir), 'content'),
      master: openMasterKey(config.masterKey, config.dataDir),
    })
    closers.add(contents.close)
    const malware = await openMalware(config, { contents, log, as: 'service' })
    closers.add(malware.close)
    const scans = makeScanStore(database)
    const sweeper = await openSweeper({ chores: listChores({ contents, scans, days: config.resultDays }), log })
    closers.add(sweeper.close)

    const metrics = makeMetrics({ region: config.region, version })
    const { pool } = database
    metrics.gauge('assay_database_connections', 'Open connections to the database.', () => pool.totalCount)
    metrics.gauge('assay_database_waiting', 'Callers that wait for a connection.', () => pool.waitingCount)
    const gate = makeAdmissionGate({ pool, observeBatch: metrics.observeBatch })
    observeEngines(metrics, malware)
    const readiness = makeReadiness({ checks: listChecks(database, malware), timeoutMs: 3000 })

    const app = await makeHttpServer({
      admission: makeAdmission({ gate, creditGate: config.creditGate, clock: systemClock }),
      accounts,
      scanning: makeScanning({
        ...{
          scans,
          gate,
          clock: systemClock,
          malware: malware.malware,
          describe: malware.describe,
          region: config.region,
        },
        observeVerdict: metrics.countVerdict,
        reportFailure: (error) => log.error({ err: error }, 'a scan failed'),
      }),
      contents,
      listEngines: () => malware.listEngines().map((engine) => ({ name: engine.name, state: engine.findState() })),
      policy: makeAddressPolicy(config.outboundAllow),
      ...{ log, logRequest, metrics, readiness, version },
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
      /** Running requests may finish; what is not done by the deadline is cut off. */
      async close() {
        readiness.startStopping()
        const deadline = setTimeout(() => app.server.closeAllConnections(), config.drainSeconds * 1000)
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

type Malware = Awaited<ReturnType<typeof openMalware>>

function listChores(deps: { contents: { sweep(): Promise<number> }; scans: ScanStore; days: number }): Chore[] {
  const isOver = () => new Date(systemClock.now().getTime() - deps.days * 86_400_000)
  return [
    { name: 'content of processes that ended', sweep: deps.contents.sweep },
    { name: 'results older than ASSAY_RESULT_DAYS', sweep: () => deps.scans.deleteSettled(isOver()) },
  ]
}

function observeEngines(metrics: Metrics, { listEngines, countWaiting }: Malware) {
  const states = () => listEngines().flatMap((engine) => engine.findState() ?? [])
  const count = () => states().reduce((sum, { signatures }) => sum + (signatures ?? 0), 0)
  const newest = () => Math.max(0, ...states().map(({ signaturesAt }) => signaturesAt?.getTime() ?? 0)) / 1000
  metrics.gauge('assay_signatures', 'Signatures that are in use.', count)
  metrics.gauge('assay_signatures_timestamp_seconds', 'When the newest signatures came out.', newest)
  metrics.gauge('assay_scans_waiting', 'Scans of large content that wait for their turn.', countWaiting)
}

function listChecks({ pool }: Database, malware: Malware): Check[] {
  return [
    {
      name: 'database',
      vital: true,
      async findFault() {
        await pool.query('select 1')
        return undefined
      },
    },
    {
      name: 'malware engine',
      vital: false,
      findFault: async () => malware.findFault(),
    },
    {
      name: 'NSFW image engine',
      vital: false,
      findFault: async () => 'No NSFW image engine is installed: NSFW image scans answer 500 and are not charged.',
    },
  ]
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
