import { join, resolve } from 'node:path'
import { openContentStore } from '../../blobs/content-store.ts'
import { makeMemoryBudget } from '../../blobs/memory-content.ts'
import type { Config } from '../../config/load-config.ts'
import type { ClaimedSource, Source, SourceStore } from '../../domain/ports/source-store.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { openSourceWorker, sourceLeaseMs } from '../../workers/periodic-work.ts'
import { makeOutbound, type ScanningParts } from '../scanning.ts'
import type { StorageParts } from '../storage.ts'
import { makeUpdateSource } from './update-source.ts'

/** Larger content goes to encrypted files. */
const memoryBytes = 16 * 1024 * 1024

/** Updates one source, or all, in the process of a command. Returns the state of each afterwards. */
export async function updateSources(
  config: Config,
  { store, log, name, signal }: { store: SourceStore; log: Logger; name: string | undefined; signal: AbortSignal },
): Promise<Source[]> {
  const names = (await store.listSources()).map((source) => source.name).filter((one) => (name ?? one) === one)
  if (name !== undefined && names.length === 0) throw new OperatorMistake(`There is no source ${name}.`)
  const contents = openContentStore({
    dir: join(resolve(config.dataDir), 'content'),
    memory: makeMemoryBudget({ maxBytes: memoryBytes }),
  })
  const update = makeUpdateSource(config, { store, fetcher: makeOutbound(config).fetcher, contents, log })
  try {
    for (const one of names) {
      const claimed = await store.claim(sourceLeaseMs, one)
      if (claimed === undefined) {
        throw new OperatorMistake(`Another process updates the source ${one}. Try again in a minute.`)
      }
      await withLease(store, claimed, (lost) => update(claimed, AbortSignal.any([signal, lost])))
    }
  } finally {
    await contents.close()
  }
  return (await store.listSources()).filter((source) => names.includes(source.name))
}

/** Extends the lease while `work` runs, and releases it if `work` fails. */
async function withLease<T>(
  store: SourceStore,
  { token, name }: ClaimedSource,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = new AbortController()
  const timer = setInterval(async () => {
    const held = await store.extend([token], sourceLeaseMs).catch(() => [token])
    if (held.length === 0) lost.abort(new OperatorMistake(`Another process updates the source ${name}.`))
  }, sourceLeaseMs / 4)
  try {
    return await work(lost.signal)
  } finally {
    clearInterval(timer)
    await store.release([token]).catch(() => {})
  }
}

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
