import type { ScanKind } from '@assay/contract'
import type { Config } from '../config/load-config.ts'
import { makeListStore } from '../database/console/list-store.ts'
import type { Database } from '../database/open-database.ts'
import { makeDescriber } from '../domain/content/media-type.ts'
import { makeDownload, makeScanner } from '../domain/scans/scanner.ts'
import { openLists, withLists } from '../domain/scans/verdict.ts'
import { makeAddressPolicy } from '../domain/scans/web-address.ts'
import { withTestKeys } from '../domain/test-mode.ts'
import { makeContentFetcher } from '../outbound/content-fetcher.ts'
import { makeGuardedAgent } from '../outbound/guarded-agent.ts'
import { makeWebhookSender } from '../outbound/webhook-sender.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Closers } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { openEngines } from './engines.ts'
import { observeEngines } from './monitoring.ts'
import { openRemoteScans } from './remote-scans.ts'
import type { StorageParts } from './storage.ts'

type Deps = { storage: StorageParts; isTest: boolean; metrics: Metrics; log: Logger; closers: Closers }

/** Opens everything that leads to a verdict: engines or remote scans, downloads, and the allow and block lists. */
export async function openScanning(config: Config, { storage, isTest, metrics, log, closers }: Deps) {
  const { database, accounts, contents, jobContents } = storage
  const engines = isTest || config.roles.worker ? await openEngines(config, { contents, log, isTest }) : undefined
  if (engines !== undefined) {
    closers.add(engines.close)
    observeEngines(metrics, engines)
  }
  const outbound = makeOutbound(config)
  const describe = makeDescriber({ entries: config.verdictCache })
  const kinds = listKinds(config, isTest)
  const remoteScans = openRemoteScans(config, { database, contents: jobContents, kinds, log })
  closers.add(remoteScans.close)
  const lists = await openListsOf(database, log)
  closers.add(lists.close)

  const liveScanner =
    engines === undefined
      ? remoteScans.makeRemoteScanClient(metrics)
      : makeScanner({
          describe,
          assess: withLists(engines.assess, lists.listCurrent),
          download: makeDownload({
            fetcher: outbound.fetcher,
            contents,
            findDownloadHosts: accounts.findDownloadHosts,
          }),
        })
  const scanner = withTestKeys(liveScanner, { describe })
  return { engines, outbound, describe, kinds, remoteScans, lists, liveScanner, scanner }
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
  const reportFailure = (error: unknown) => log.warn({ err: error }, 'cannot read the allow and block lists')
  return { store, ...(await openLists({ store, clock: systemClock, everyMs: listRefreshMs, reportFailure })) }
}

function listKinds({ nsfwProfile }: Config, isTest: boolean): ScanKind[] {
  if (isTest) return []
  return nsfwProfile === 'off' ? ['malware'] : ['malware', 'nsfw_image']
}
