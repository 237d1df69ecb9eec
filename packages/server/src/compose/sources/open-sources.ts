import { join, resolve } from 'node:path'
import { openContentStore } from '../../blobs/content-store.ts'
import { makeMemoryBudget } from '../../blobs/memory-content.ts'
import type { Config } from '../../config/load-config.ts'
import type { ClaimedSource, Source, SourceStore } from '../../domain/ports/source-store.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import type { Logger } from '../../runtime/logger.ts'
import { sourceLeaseMs } from '../../workers/source-worker.ts'
import { makeOutbound } from '../scanning.ts'
import { makeUpdateSource } from './update-source.ts'

const extendEveryMs = 15_000
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
  }, extendEveryMs)
  try {
    return await work(lost.signal)
  } finally {
    clearInterval(timer)
    await store.release([token]).catch(() => {})
  }
}
