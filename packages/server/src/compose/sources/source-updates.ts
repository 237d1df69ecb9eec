import type { Config } from '../../config/load-config.ts'
import type { SourceStore } from '../../domain/ports/source-store.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { openSourceWorker } from '../../workers/source-worker.ts'
import type { ScanningParts } from '../scanning.ts'
import type { StorageParts } from '../storage.ts'

type Deps = { storage: StorageParts; scanning: ScanningParts; metrics: Metrics; log: Logger }

/** Updates sources when they are due, on nodes with engines: only those can try signatures. */
export function openSourceUpdates(config: Config, { storage, scanning, metrics, log }: Deps) {
  const { sources: store, contents, database } = storage
  observeSources(metrics, store)
  if (!config.roles.worker || !scanning.kinds.includes('malware')) return { close: async () => {} }
  const { fetcher } = scanning.outbound
  const onEscape = scanning.engines?.onEscape
  const worker = openSourceWorker({
    store,
    async update(claimed, signal) {
      // Imported here, because most installations have no sources.
      const { makeUpdateSource } = await import('./update-source.ts')
      return makeUpdateSource(config, { store, fetcher, contents, log, onEscape })(claimed, signal)
    },
    log,
    isOutage: database.watch.isOutage,
  })
  scanning.remoteScans.notifications.on('sources', worker.poke)
  return { close: () => worker.close() }
}

function observeSources(metrics: Metrics, store: Pick<SourceStore, 'listSources'>) {
  metrics.gaugesBy(
    'source',
    {
      assay_source_age_seconds: "Time since the publisher's signatures were last known to be those in use.",
      assay_source_failed: '1 while the last update of the source failed, otherwise 0.',
      assay_source_signatures: 'Signatures of the source in use.',
      assay_source_held: 'Signatures of the source that are held back, because they match known-good files.',
    },
    async () =>
      (await store.listSources()).map(({ name, ageSeconds, error, signatures, held }) => ({
        label: name,
        values: {
          assay_source_age_seconds: ageSeconds,
          assay_source_failed: error === null ? 0 : 1,
          assay_source_signatures: signatures ?? 0,
          assay_source_held: held.length,
        },
      })),
  )
}
