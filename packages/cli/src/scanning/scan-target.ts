import { createReadStream } from 'node:fs'
import { Aborted, AssayError, type Client, ConnectionFailed, type FileInput, type Scans } from '@assay/client'
import { type Target, toFileFault, toShown } from '../targets/target.ts'
import { isImageHead } from './image-head.ts'
import { findLabel } from './label.ts'
import { type Kind, limits } from './limits.ts'
import { newFailed, type Outcome } from './outcome.ts'
import { makePatience } from './patience.ts'
import { makeReadFile, type ReadFile } from './read-file.ts'
import { readStream } from './read-stream.ts'
import { toFailed } from './to-failed.ts'

export type ScanDeps = {
  client: Client
  kind: Kind
  /** In the background; `wait` for the verdict or take the id. */
  background: false | { wait: boolean; callbackUrl?: string }
  timeoutMs?: number
  signal: AbortSignal
  /** Something is in the way, and is being waited for. */
  tell(sentence: string): void
}

/** The name of what comes from a stream is what the person calls it. */
type Sent = { input: FileInput; label: string | undefined; isOnce: boolean; onSent(bytes: number): void }

/** A job is looked after for as long as this, unless the person says otherwise. */
const waitMs = 3_600_000
/** With its form this is less than what the service takes on trust, 64 KB. */
const tinyBytes = 60 * 1024

/** Scans one target after the other, or several at a time. Never throws: whatever happens is an outcome. */
export function makeScanTarget(deps: ScanDeps) {
  const { client, kind, background, signal, timeoutMs } = deps
  const scans: Scans = kind === 'malware' ? client.malware : client.nsfw.images
  const insist = makePatience(deps)
  const readFile = makeReadFile()
  const options = { signal, ...(timeoutMs !== undefined && { timeoutMs }) }

  return async (target: Target, onSent: (bytes: number) => void): Promise<Outcome> => {
    try {
      if (target.kind === 'skipped') return { kind: 'skipped', reason: target.reason }
      if (target.kind === 'unreadable') return newFailed(target.reason, target.code)
      if (target.kind === 'url') return await scanUrl(target.url)
      return target.kind === 'stream' ? await scanStream(target, onSent) : await scanFile(target, onSent)
    } catch (error) {
      return signal.aborted ? { kind: 'unfinished' } : toFailed(error)
    }
  }

  async function scanFile(target: Extract<Target, { kind: 'file' }>, onSent: Sent['onSent']): Promise<Outcome> {
    const { place, isNamed } = target
    let file: ReadFile
    try {
      file = await readFile(place, target)
    } catch (error) {
      const { code, reason } = toFileFault(error)
      return newFailed(reason, code)
    }
    if (file.size === 0) return { kind: 'empty' }
    if (kind === 'nsfw' && !isNamed && !isImageHead(file.head)) return { kind: 'skipped', reason: 'Not an image' }
    if (file.size > limits[kind].async) return newFailed(`Larger than ${toMegabytes(limits[kind].async)}`, 'TooLarge')
    const { raw } = place
    const input = file.whole ?? (typeof raw === 'string' ? raw : createReadStream(raw))
    const isOnce = typeof input === 'object' && !Buffer.isBuffer(input)
    const label = file.whole === undefined && !isOnce ? undefined : findLabel(place.shown, kind)
    return await send({ input, label, isOnce, onSent }, file.size > limits[kind].sync)
  }

  async function scanStream(target: Extract<Target, { kind: 'stream' }>, onSent: Sent['onSent']): Promise<Outcome> {
    const stream = target.open()
    // Nothing may come for a long time, and reading does not end by itself.
    const stop = () => stream.destroy(new Aborted('Interrupted'))
    signal.addEventListener('abort', stop)
    try {
      const input = await readStream(stream)
      const isWhole = Buffer.isBuffer(input)
      if (isWhole && input.length === 0) return newFailed('Nothing came from it, there is nothing to scan', 'Empty')
      const label = findLabel(toShown(target), kind)
      return await send({ input, label, isOnce: !isWhole, onSent }, !isWhole)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  async function scanUrl(url: string): Promise<Outcome> {
    if (background !== false) return await settle(await insist(() => scans.submitUrl(url, toSubmitOptions())))
    const result = await insist(() => scans.scanUrl(url, options))
    return { kind: 'scanned', result, meta: result.meta }
  }

  async function send({ input, label, isOnce, onSent }: Sent, isLarge: boolean): Promise<Outcome> {
    const again = isOnce ? <T>(call: () => Promise<T>) => call() : insist
    const sendOptions = {
      ...(label !== undefined && { fileName: label }),
      onProgress: ({ sent }: { sent: number }) => onSent(sent),
    }
    if (background === false && !isLarge) {
      const scan = (key: object) => scans.scanFile(input, { ...options, ...sendOptions, ...key })
      const isTiny = kind === 'malware' && Buffer.isBuffer(input) && input.length <= tinyBytes
      const result = await again(() => (isTiny ? scanQuickly(scan) : scan({})))
      return { kind: 'scanned', result, meta: result.meta }
    }
    return await settle(await again(() => scans.submitFile(input, { ...toSubmitOptions(), ...sendOptions })))
  }

  function toSubmitOptions() {
    const callbackUrl = background === false ? undefined : background.callbackUrl
    return { ...options, ...(callbackUrl !== undefined && { callbackUrl }) }
  }

  async function settle({ id, meta }: Awaited<ReturnType<Scans['submitFile']>>): Promise<Outcome> {
    if (background !== false && !background.wait) return { kind: 'submitted', id, meta }
    try {
      const result = await insist(() => scans.waitFor(id, { timeoutMs: waitMs, ...options }))
      return { kind: 'scanned', result, meta: result.meta }
    } catch (error) {
      // It goes on without us: whoever has the id can ask for it.
      if (signal.aborted) return { kind: 'submitted', id }
      throw error
    }
  }
}

/**
 * Without an idempotency key, which would have the service ask its database three times instead of once. When the
 * connection breaks, it is sent again with one: a verdict on every file is worth a credit that may be lost then.
 */
async function scanQuickly<T>(scan: (key: object) => Promise<T>): Promise<T> {
  try {
    return await scan({ idempotencyKey: null })
  } catch (error) {
    const isUnknown =
      error instanceof ConnectionFailed || (error instanceof AssayError && [502, 504].includes(error.status ?? 0))
    if (isUnknown) return await scan({})
    throw error
  }
}

const toMegabytes = (bytes: number) => `${bytes / 1024 / 1024} MB`
