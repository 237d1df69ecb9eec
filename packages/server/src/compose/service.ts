import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { ScanKind } from '@assay/contract'
import { registerConsole } from '../admin/console-files.ts'
import { registerAdmin } from '../admin/register-admin.ts'
import { registerConsoleScans } from '../admin/register-console-scans.ts'
import { openContentStore } from '../blobs/content-store.ts'
import { makeJobContents } from '../blobs/job-contents.ts'
import { openMasterKey } from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import { makeAdmissionGate } from '../database/admission-gate.ts'
import { makeListStore } from '../database/console/list-store.ts'
import { makeOperations } from '../database/console/operations.ts'
import { makeRefusalStore } from '../database/console/refusal-store.ts'
import { makeIdempotencyStore } from '../database/idempotency-store.ts'
import { makeBookOpener } from '../database/regions/open-books.ts'
import { isSatellite } from '../database/regions/satellite-region.ts'
import { makeScanStore } from '../database/scan-store.ts'
import { makeAdmission } from '../domain/accounts/admission.ts'
import { makeConsoleKeys } from '../domain/console/console-keys.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { makeReadiness } from '../domain/readiness.ts'
import { openLists, withLists } from '../domain/scans/allow-and-block.ts'
import { makeAssess } from '../domain/scans/assess.ts'
import { makeDownload } from '../domain/scans/download.ts'
import { makeOutcomes } from '../domain/scans/outcome.ts'
import { makeScanning } from '../domain/scans/scanning.ts'
import { makeSubmitting } from '../domain/scans/submitting.ts'
import { withTestKeys } from '../domain/test-mode/test-outcomes.ts'
import { makeHttpServer } from '../http/server.ts'
import { watchCertificate } from '../http/watch-certificate.ts'
import { systemClock } from '../runtime/clock.ts'
import { newClosers } from '../runtime/closers.ts'
import type { ServiceLogs } from '../runtime/logger.ts'
import { makeMetrics, openMetricsServer } from '../runtime/metrics.ts'
import { version } from '../runtime/version.ts'
import { openRefusalCounter } from '../workers/refusal-counter.ts'
import { openSweeper } from '../workers/sweeper.ts'
import { openBackground } from './background.ts'
import { listChores } from './chores.ts'
import { consoleDir, makeConsoleHandlers, makeEntrance } from './console.ts'
import { openImages } from './images.ts'
import { openMalware } from './malware.ts'
import { makeNoEngines } from './no-engines.ts'
import { openOffice } from './office.ts'
import { makeOperatorDesk } from './operator-desk.ts'
import { makeOutbound } from './outbound.ts'
import { listChecks, observeDatabase, observeEngines, observeQueues } from './watch.ts'

/**
 * The whole service, listening. Every part is built here, from the ground up; closing goes the other way. With `isTest`
 * there are no engines: all its keys are for tests.
 */
export async function openService(config: Config, { log, logRequest }: ServiceLogs, { isTest = false } = {}) {
  const closers = newClosers()
  try {
    const office = await openOffice(config, 'service', log, { isTest })
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
    const contents = openContentStore({ dir: join(dataDir, 'content'), master })
    closers.add(contents.close)
    const jobContents = makeJobContents({ dir: join(dataDir, 'jobs'), master })
    // Both at once: each waits for processes of its own.
    const none = isTest ? makeNoEngines() : undefined
    const opening = none === undefined ? openImages(config, { log }) : none.images
    closers.add(async () => (await opening).close())
    const malware = none?.malware ?? (await openMalware(config, { contents, log, as: 'service' }))
    closers.add(malware.close)
    const engines = { malware, images: await opening }

    const metrics = makeMetrics({ region: config.region, version })
    observeDatabase(metrics, database)
    observeEngines(metrics, engines)
    const openBooks = (await isSatellite(database.pool)) ? makeBookOpener(database.pool) : undefined
    const gate = makeAdmissionGate({ pool: database.pool, observeBatch: metrics.observeBatch, openBooks })
    const scans = makeScanStore(database)
    const repeats = makeIdempotencyStore(database)
    const { policy, fetcher, sender } = makeOutbound(config)
    const { describe } = malware
    const lists = makeListStore(database)
    const reportFailure = (error: unknown) => log.warn({ err: error }, 'the allow and block lists could not be read')
    const listed = await openLists({ store: lists, clock: systemClock, everyMs: 3000, reportFailure })
    closers.add(listed.close)
    const bare = makeAssess({ malware: malware.malware, images: engines.images.images })
    const assess = withLists(bare, listed.listCurrent)
    const live = makeOutcomes({
      describe,
      assess,
      download: makeDownload({ fetcher, contents, findDownloadHosts: accounts.findDownloadHosts }),
    })
    const outcomes = withTestKeys(live, { describe })
    const shared = { clock: systemClock, region: config.region, gate, describe }
    const observeVerdict = metrics.countVerdict
    const kinds: ScanKind[] = isTest ? [] : config.nsfwProfile === 'off' ? ['malware'] : ['malware', 'nsfw_image']
    const background = openBackground(config, {
      ...{ database, kinds, contents: jobContents, deliveries, outcomes, sender, observeVerdict, log },
    })
    closers.add(background.close)
    observeQueues(metrics, { jobs: background.jobs, deliveries })
    const entrance = makeEntrance(database)
    const refusalStore = makeRefusalStore(database)
    const sweeper = await openSweeper({
      chores: listChores({
        ...{ contents, jobContents, scans, deliveries, repeats, resultDays: config.resultDays, openBooks },
        ...{ jobs: background.jobs, members: entrance.members, lists, refusals: refusalStore },
        giveUpAbandoned: background.giveUpAbandoned,
      }),
      log,
    })
    closers.add(sweeper.close)
    const readiness = makeReadiness({ checks: listChecks(database, isTest ? undefined : engines), timeoutMs: 3000 })
    const listEngines = () => [...malware.listEngines(), ...engines.images.listEngines()]

    const describeEngines = () => listEngines().map((engine) => ({ name: engine.name, state: engine.findState() }))
    const desk = makeOperatorDesk(config, {
      ...{ office, operations: makeOperations(database), readiness, metrics, assess: bare, contents, log },
      ...{ listEngines: describeEngines, listRefused: malware.listRefused, updateSignatures: malware.updateSignatures },
    })
    const handlers = makeConsoleHandlers(config, {
      ...{ isTestMode: isTest, desk, lists, refreshLists: listed.refresh, onQueued: background.onQueued },
      ...{ ...entrance, office, sender, policy, onReplayed: background.onReplayed },
    })
    const refusals = openRefusalCounter({ store: refusalStore, clock: systemClock, log })
    closers.add(refusals.close)
    const doing = {
      admission: makeAdmission({ gate, creditGate: config.creditGate, clock: systemClock }),
      scanning: makeScanning({
        ...{ ...shared, scans, repeats, outcomes, bell: background.bell, observeVerdict },
        reportFailure: (error) => log.error({ err: error }, 'a scan failed'),
      }),
      submitting: makeSubmitting({ ...shared, kinds, contents: jobContents, onQueued: background.onQueued }),
      ...{ contents, jobContents, policy },
    }
    const guarded = { ...entrance, adminToken: config.adminToken }
    const app = await makeHttpServer({
      ...{ ...doing, accounts, noteRefusal: refusals.note },
      listEngines: describeEngines,
      ...{ log, logRequest, metrics, readiness, version },
      ...{ region: config.region, isTest },
      publicUrl: config.publicUrl,
      corsOrigins: config.corsOrigins,
      registerMore: [
        (scope) => registerConsole(scope, consoleDir),
        (scope) => registerAdmin(scope, { ...guarded, handlers }),
        (scope) =>
          registerConsoleScans(scope, { ...guarded, ...doing, consoleKeys: makeConsoleKeys({ ...office, isTest }) }),
      ],
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
      welcome: await entrance.invitations.inviteFirstOperator(),
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
