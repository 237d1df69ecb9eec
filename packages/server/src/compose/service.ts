import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config/load-config.ts'
import { makeAdmissionGate } from '../database/admission-gate.ts'
import type { Database } from '../database/open-database.ts'
import { makeScanStore } from '../database/scan-store.ts'
import { makeAdmission } from '../domain/accounts/admission.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { type Check, makeReadiness } from '../domain/readiness.ts'
import { makeAddressPolicy } from '../domain/scans/public-address.ts'
import { makeScanning } from '../domain/scans/scanning.ts'
import { makeHttpServer } from '../http/server.ts'
import { watchCertificate } from '../http/watch-certificate.ts'
import { newClosers } from '../runtime/closers.ts'
import type { ServiceLogs } from '../runtime/logger.ts'
import { makeMetrics, openMetricsServer } from '../runtime/metrics.ts'
import { version } from '../runtime/version.ts'
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

    const metrics = makeMetrics({ region: config.region, version })
    const { pool } = database
    metrics.gauge('assay_database_connections', 'Open connections to the database.', () => pool.totalCount)
    metrics.gauge('assay_database_waiting', 'Callers that wait for a connection.', () => pool.waitingCount)
    const gate = makeAdmissionGate({ pool, observeBatch: metrics.observeBatch })
    const readiness = makeReadiness({ checks: listChecks(database), timeoutMs: 3000 })

    const app = await makeHttpServer({
      admission: makeAdmission({ gate, creditGate: config.creditGate }),
      accounts,
      scanning: makeScanning({ scans: makeScanStore(database) }),
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

function listChecks({ pool }: Database): Check[] {
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
      findFault: async () => 'No malware engine is installed: malware scans answer 500 and are not charged.',
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
