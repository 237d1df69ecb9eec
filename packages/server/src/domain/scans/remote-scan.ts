import { maxContentBytes, type ScanKind } from '@assay/contract'
import { v7 as newUuid } from 'uuid'
import type { Content } from '../content/content.ts'
import type { JobContent, JobContents } from '../ports/content-store.ts'
import { EngineBusy, EngineDown } from '../ports/engines.ts'
import {
  type ClaimedRemoteScan,
  type JobSource,
  maxRemoteScanAttempts,
  type Notifications,
  type RemoteScanCompletion,
  type RemoteScanOptions,
  type RemoteScanStore,
} from '../ports/job-store.ts'
import { isTransient, retryBriefly } from '../retry.ts'
import { anyStore, toQueueName } from './jobs.ts'
import type { FinalResult, ScanOptions } from './scan.ts'
import type { Scanner } from './scanner.ts'
import type { ResultWaiters } from './scanning.ts'

type ClientDeps = {
  remoteScans: RemoteScanStore
  contents: JobContents
  /** The kinds of scan that this installation has engines for. */
  kinds: ScanKind[]
  resultWaiters: ResultWaiters
  notifications: Notifications
  reportFailure(error: unknown): void
  /** How long a remote scan may wait for a worker to claim it. */
  claimTimeoutMs?: number
}

type RemoteRequest = { id: string; source: JobSource; options: RemoteScanOptions; bytes: number; signal: AbortSignal }

/** Time for a scan of given content; a URL has twice as long, for its download. */
const scanMs = 60_000
/** Bytes for which a scan gets one more millisecond: slower than the slowest content. */
const bytesPerMs = 1000
/** How much longer the row lives than its caller waits, so that the sweeper finds only rows that a node left behind. */
const graceMs = 10_000
const maxWaiting = 1000
/** How often to read the state of a remote scan, in case a notification is lost. */
const pollMs = 500
/** How often to read the state while no notification can arrive. */
const pollMsWithoutNotifications = 40

/** The scanner of a node without engines: a worker of another node runs each scan, and this node waits for its result. */
export function makeRemoteScanClient(deps: ClientDeps): Scanner & { countWaiting(): number } {
  const { claimTimeoutMs = 5000 } = deps
  let waiting = 0

  return { scanContent, scanUrl, countWaiting: () => waiting }

  async function scanContent(content: Content, options: ScanOptions) {
    const { kind, contentName, flagsSexy, accountId } = options
    requireCapacity(kind)
    const identity = { bytes: content.bytes, sha1: content.sha1, sha256: content.sha256 }
    const id = newUuid()
    const source = await toJobContent(content).persist({ accountId: null, scanId: id })
    const remoteOptions = { kind, contentName, flagsSexy, accountId, identity }
    const signal = options.abortWhenClientLeaves?.() ?? neverAborted
    try {
      const result = await requestScan({ id, source, options: remoteOptions, bytes: content.bytes, signal }, scanMs)
      return checkRemoteResult(result, identity)
    } finally {
      // The caller does not wait for the removal; the sweeper removes what remains.
      deps.contents.remove(source).catch(deps.reportFailure)
    }
  }

  async function scanUrl(
    url: string,
    { kind, contentName, flagsSexy, accountId, signal }: Parameters<Scanner['scanUrl']>[1],
  ) {
    requireCapacity(kind)
    const options = { kind, contentName, flagsSexy, accountId, identity: null }
    const request = {
      id: newUuid(),
      source: { at: 'url' as const, url },
      options,
      bytes: maxContentBytes[kind].sync,
      signal,
    }
    return checkRemoteResult(await requestScan(request, 2 * scanMs), null)
  }

  function requireCapacity(kind: ScanKind) {
    if (!deps.kinds.includes(kind)) throw new EngineDown('Scans of this kind are switched off')
    if (waiting >= maxWaiting) throw new EngineBusy(`${maxWaiting} scans wait for workers already`)
  }

  async function requestScan({ id, source, options, bytes, signal }: RemoteRequest, baseMs: number): Promise<unknown> {
    const timeoutMs = baseMs + bytes / bytesPerMs
    const deadline = performance.now() + timeoutMs
    const finished = new AbortController()
    const stop = AbortSignal.any([signal, finished.signal])
    const { isListening } = deps.notifications
    const wait = () => deps.resultWaiters.wait(id, isListening() ? pollMs : pollMsWithoutNotifications, stop)
    let isTaken = false
    waiting++
    try {
      const queue = toQueueName(options.kind, source.at === 'url' ? anyStore : deps.contents.toStoreId(source))
      // The wait begins before the row exists: a worker may complete it at once.
      let notified = wait()
      await deps.remoteScans.add({ id, queue, source, options, ttlMs: Math.ceil(timeoutMs) + graceMs })
      deps.notifications.send('remote-scans')
      for (;;) {
        await notified
        signal.throwIfAborted()
        notified = wait()
        const current = await deps.remoteScans.take(id)
        isTaken = current.state !== 'open'
        if (current.state === 'done') return current.result
        if (current.state !== 'open') throw toFailure(current)
        requireProgress(current)
        if (performance.now() > deadline) throw new EngineDown(`No worker completed the scan within ${timeoutMs} ms`)
      }
    } finally {
      waiting--
      finished.abort()
      if (!isTaken) await deps.remoteScans.remove(id).catch(deps.reportFailure)
    }
  }

  /** Gives up early when no worker holds the scan: all workers are busy, or there are none. */
  function requireProgress({ attempts, freeMs }: { attempts: number; freeMs: number }) {
    if (attempts >= maxRemoteScanAttempts && freeMs > 0)
      throw new EngineDown(`${attempts} workers died during the scan`)
    if (freeMs <= claimTimeoutMs) return
    if (attempts === 0) throw new EngineBusy(`No worker claimed the scan within ${claimTimeoutMs} ms`)
    throw new EngineDown('The worker of the scan died, and no other claimed it')
  }
}

const neverAborted = new AbortController().signal

function toFailure(current: { state: 'failed'; failure: string } | { state: 'missing' }): EngineDown {
  if (current.state === 'missing')
    return new EngineDown('The remote scan does not exist any more: the database restarted')
  return current.failure === 'busy' ? new EngineBusy('The worker is overloaded') : new EngineDown('The worker failed')
}

function toJobContent(content: Content): JobContent {
  if ('persist' in content) return content as JobContent
  throw new Error('A node without engines cannot scan content that only this process can read')
}

/**
 * Checks a result that another process wrote. Throws when it is malformed, contradicts itself or is about other content
 * than `identity`, so that it never becomes a verdict. `identity` is null when the worker downloaded the content.
 */
export function checkRemoteResult(result: unknown, identity: Pick<Content, 'bytes' | 'sha256'> | null): FinalResult {
  if (!isFinalResult(result)) throw new Error('The result of a remote scan is malformed')
  const { status, signals, contentLength, metadata } = result
  if ((status === 'clean') !== ((signals ?? []).length === 0)) {
    throw new Error(`The result of a remote scan contradicts itself: ${status} with ${signals?.length ?? 0} signals`)
  }
  const sha256 = metadata?.hash_sha256
  if (identity === null) {
    // Everything that was scanned has a hash. A URL that yielded no content is an error with a reason alone.
    if (status !== 'error' && sha256 === undefined) throw new Error('The result of a remote scan is about no content')
  } else if (sha256 !== identity.sha256 || contentLength !== identity.bytes) {
    throw new Error('The result of a remote scan is about other content')
  }
  return result
}

function isFinalResult(result: unknown): result is FinalResult & { status: 'clean' | 'threat' | 'error' } {
  if (typeof result !== 'object' || result === null) return false
  const { status, signals, metadata, contentLength, contentType } = result as Record<string, unknown>
  return (
    (status === 'clean' || status === 'threat' || status === 'error') &&
    (signals === null || (Array.isArray(signals) && signals.every(isString))) &&
    (metadata === null || (typeof metadata === 'object' && Object.values(metadata as object).every(isString))) &&
    Number.isSafeInteger(contentLength) &&
    (contentLength as number) >= 0 &&
    isString(contentType)
  )
}

const isString = (value: unknown): value is string => typeof value === 'string'

type RunRemoteScanDeps = {
  remoteScans: RemoteScanStore
  contents: JobContents
  scanner: Scanner
  reportFailure(error: unknown): void
  onCompleted(id: string): void
}

/** Runs a scan for another node. A failure is reported at once: its caller can try again sooner than this worker. */
export function makeRunRemoteScan(deps: RunRemoteScanDeps) {
  /** `signal` is aborted when this process stops or loses the lease. */
  return async (remoteScan: ClaimedRemoteScan, signal: AbortSignal): Promise<void> => {
    let completion: RemoteScanCompletion
    try {
      completion = { result: await scan(remoteScan, signal) }
    } catch (error) {
      if (signal.aborted) return deps.remoteScans.release(remoteScan.lease)
      if (!isTransient(error)) deps.reportFailure(error)
      completion = { failure: isTransient(error) ? 'busy' : 'down' }
    }
    if (await retryBriefly(() => deps.remoteScans.complete(remoteScan.lease, completion)))
      deps.onCompleted(remoteScan.lease.id)
  }

  async function scan({ lease, source, options }: ClaimedRemoteScan, signal: AbortSignal): Promise<FinalResult> {
    const { identity, ...scanAttributes } = options
    const { accountId } = scanAttributes
    const scanOptions = { ...scanAttributes, isTest: false }
    if (source.at === 'url') {
      if (accountId === null) throw new Error('A remote scan of a URL has no account')
      return deps.scanner.scanUrl(source.url, { ...scanOptions, accountId, mode: 'sync', signal })
    }
    if (identity === null) throw new Error('A remote scan does not say which content it is about')
    const content = await deps.contents.open(source, identity, { accountId: null, scanId: lease.id })
    return deps.scanner.scanContent(content, scanOptions).finally(content.release)
  }
}
