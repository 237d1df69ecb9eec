import { availableParallelism } from 'node:os'
import type { ScanKind } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
import { makeListStore } from '../database/hash-list-store.ts'
import { openNotifications } from '../database/notifications.ts'
import type { Database } from '../database/open-database.ts'
import { makeRemoteScanStore } from '../database/remote-scan-store.ts'
import { makeDescriber } from '../domain/content/media-type.ts'
import { makeAuthorizeDownload } from '../domain/downloads/credentials.ts'
import { openHashLists, withHashLists } from '../domain/knowledge/hash-lists.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import { listQueues } from '../domain/scans/jobs.ts'
import { makeRemoteScanClient, makeRunRemoteScan } from '../domain/scans/remote-scan.ts'
import { openLists, withLists } from '../domain/scans/scan.ts'
import {
  type Degradation,
  makeDegradation,
  makeDownload,
  makeScanner,
  openSharedDegradation,
  type Scanner,
  withRefusal,
} from '../domain/scans/scanner.ts'
import { makeResultWaiters } from '../domain/scans/scanning.ts'
import { makeAddressPolicy } from '../domain/scans/web-address.ts'
import { withTestKeys } from '../domain/test-mode.ts'
import { makeContentFetcher } from '../outbound/content-fetcher.ts'
import { makeGuardedAgent } from '../outbound/guarded-agent.ts'
import { signObject } from '../outbound/s3-signature.ts'
import { makeWebhookSender } from '../outbound/senders.ts'
import type { Closers } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { openRemoteScanWorker } from '../workers/scan-workers.ts'
import { openEngines } from './engines.ts'
import { observeDegradation, observeEngines } from './monitoring.ts'
import type { StorageParts } from './storage.ts'

type Deps = { storage: StorageParts; isTest: boolean; metrics: Metrics; log: Logger; closers: Closers }

/** Opens everything that leads to a verdict: engines or remote scans, downloads, and the allow and block lists. */
export async function openScanning(config: Config, { storage, isTest, metrics, log, closers }: Deps) {
  const { database, accounts, contents, jobContents, signatures } = storage
  const { isOutage } = database.watch
  const hashLists = await openHashListsOf(storage, log)
  closers.add(hashLists.close)
  const engines =
    isTest || config.roles.worker
      ? await openEngines(config, {
          contents,
          signatures,
          isOutage,
          clock: database.clock,
          hashLists: hashLists.lists,
          findAccountPolicy: accounts.findVerdictPolicy,
          metrics,
          log,
          isTest,
        })
      : undefined
  if (engines !== undefined) {
    closers.add(engines.close)
    observeEngines(metrics, engines)
  }
  const outbound = makeOutbound(config)
  const describe = makeDescriber({ entries: config.verdictCache })
  const kinds = listKinds(config, isTest)
  const degradation =
    engines?.malware.degradation ?? (await openDegradationOfWorkers(config, { storage, log, closers }))
  observeDegradation(metrics, degradation)
  /** A worker that would refuse malware scans leaves them to other workers, or waiting until it is not degraded. */
  const listClaimedKinds = () =>
    degradation.findRefusal() === undefined ? kinds : kinds.filter((kind) => kind !== 'malware')
  const remoteScans = openRemoteScans(config, { database, contents: jobContents, kinds, listClaimedKinds, log })
  closers.add(remoteScans.close)
  remoteScans.notifications.on('signatures', () => void engines?.sharedSignatures.refresh())
  const lists = await openListsOf(database, log)
  closers.add(lists.close)
  remoteScans.notifications.on('hash-lists', () => {
    void hashLists.refresh()
    void lists.refresh().catch(lists.reportFailure)
  })

  const scannerOfNode =
    engines === undefined
      ? remoteScans.makeRemoteScanClient(metrics)
      : makeScanner({
          describe,
          assess: withLists(withHashLists(engines.assess, hashLists.lists), lists.listCurrent),
          download: makeDownload({
            fetcher: outbound.fetcher,
            contents,
            findDownloadHosts: accounts.findDownloadHosts,
            authorize: makeAuthorizeDownload({
              credentials: storage.downloadCredentials,
              signObject,
              clock: database.clock,
            }),
          }),
        })
  const liveScanner = withRefusal(scannerOfNode, degradation)
  const scanner = withTestKeys(liveScanner, { describe })
  return { engines, outbound, describe, kinds, degradation, listClaimedKinds, remoteScans, lists, liveScanner, scanner }
}

export type ScanningParts = Awaited<ReturnType<typeof openScanning>>

/** Makes the clients for downloads and webhooks, which share one policy of which addresses may be called. */
export function makeOutbound({ outboundAllow, outboundProxy: proxy }: Config) {
  const policy = makeAddressPolicy(outboundAllow)
  const agent = makeGuardedAgent({ policy, ...(proxy === undefined ? {} : { proxy }) })
  return { policy, fetcher: makeContentFetcher({ agent, policy }), sender: makeWebhookSender({ agent, policy }) }
}

const listRefreshMs = 3000

async function openListsOf(database: Database, log: Logger) {
  const store = makeListStore(database)
  const reportFailure = makeReport(database, log, 'cannot read the allow and block lists')
  const opened = await openLists({ store, clock: database.clock, everyMs: listRefreshMs, reportFailure })
  return { store, reportFailure, ...opened }
}

/** A change reaches every node by a notification; this is for notifications that do not arrive. */
const hashListRefreshMs = 5000

function openHashListsOf({ hashLists: store, database }: StorageParts, log: Logger) {
  const reportFailure = makeReport(database, log, 'cannot read which hash lists there are')
  return openHashLists({ store, everyMs: hashListRefreshMs, reportFailure })
}

const nodesRefreshMs = 5000

/** For a node without engines: what its workers report decides whether its scans are degraded. */
async function openDegradationOfWorkers(
  { whenDegraded }: Config,
  { storage, log, closers }: Pick<Deps, 'storage' | 'log' | 'closers'>,
): Promise<Degradation> {
  const reportFailure = makeReport(storage.database, log, 'cannot read the state of the workers')
  const { find, close } = await openSharedDegradation({ nodes: storage.nodes, everyMs: nodesRefreshMs, reportFailure })
  closers.add(close)
  return makeDegradation({ find, whenDegraded })
}

/** Logs failures of a refresh, except outages of the database, which its watch logs once for all parts. */
const makeReport =
  ({ watch }: Database, log: Logger, message: string) =>
  (error: unknown) => {
    if (!watch.isOutage(error)) log.warn({ err: error }, message)
  }

function listKinds({ nsfwProfile }: Config, isTest: boolean): ScanKind[] {
  if (isTest) return []
  return nsfwProfile === 'off' ? ['malware'] : ['malware', 'nsfw_image']
}

/** As many as background jobs, which make room for remote scans. */
const remoteScansPerCore = 64

/** Opens what nodes share: notifications, and the remote scans that an API node asks a worker for. */
export function openRemoteScans(
  config: Config,
  deps: {
    database: Database
    contents: JobContents
    kinds: ScanKind[]
    /** The kinds of scan that this process claims at the moment. */
    listClaimedKinds(): ScanKind[]
    log: Logger
  },
) {
  const { database, contents, kinds, listClaimedKinds, log } = deps
  const isAlone = config.databaseUrl === undefined
  const notifications = openNotificationsOf(database, { isAlone, log })
  const resultWaiters = makeResultWaiters()
  notifications.on('completed', (ids) => ids.forEach(resultWaiters.notify))
  const remoteScans = makeRemoteScanStore({
    ...database,
    listQueues: () => listQueues(listClaimedKinds(), contents.storeIds),
  })

  return {
    remoteScans,
    resultWaiters,
    notifications,
    /** For a node without engines: a scanner that passes each scan to a worker. */
    makeRemoteScanClient(metrics: Metrics): Scanner {
      const client = makeRemoteScanClient({
        remoteScans,
        contents,
        kinds,
        resultWaiters,
        notifications,
        reportFailure: (error) => log.warn({ err: error }, 'cannot clean up a remote scan; the sweeper will'),
      })
      metrics.gauge('assay_errands_waiting', 'Remote scans whose result this node waits for.', client.countWaiting)
      return client
    },
    /** For a node that scans. No other node can use the embedded database, so there are no remote scans on it. */
    openWorker(scanner: Scanner) {
      if (isAlone) return undefined
      const run = makeRunRemoteScan({
        remoteScans,
        contents,
        scanner,
        reportFailure: (error) => log.error({ err: error }, 'a remote scan for another node failed'),
        onCompleted: (id) => notifications.send('completed', id),
      })
      return openRemoteScanWorker({
        remoteScans,
        run,
        notifications,
        concurrency: remoteScansPerCore * availableParallelism(),
        log,
        isOutage: database.watch.isOutage,
      })
    },
    close: notifications.close,
  }
}

/**
 * A node that is alone on its embedded database sends nothing, because there is no other node. It listens, because
 * commands of the operator change lists, signatures and sources in processes of their own.
 */
function openNotificationsOf({ direct, pool }: Database, { isAlone, log }: { isAlone: boolean; log: Logger }) {
  const notifications = openNotifications({
    connector: direct.connector,
    pool,
    log,
    hasOwnAddress: direct.pool !== pool,
  })
  return isAlone ? { ...notifications, send: () => {} } : notifications
}
