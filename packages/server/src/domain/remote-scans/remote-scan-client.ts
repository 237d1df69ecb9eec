import { maxContentBytes, type ScanKind } from '@assay/contract'
import { v7 as newUuid } from 'uuid'
import type { Content } from '../content/content.ts'
import type { JobContent, JobContents } from '../ports/content-store.ts'
import { EngineBusy, EngineDown } from '../ports/engines.ts'
import type { JobSource } from '../ports/job-store.ts'
import type { Notifications } from '../ports/notifications.ts'
import { maxRemoteScanAttempts, type RemoteScanOptions, type RemoteScanStore } from '../ports/remote-scan-store.ts'
import type { ScanOptions } from '../scans/assess.ts'
import { anywhere, toQueueName } from '../scans/queues.ts'
import type { ResultWaiters } from '../scans/result-waiters.ts'
import type { Scanner } from '../scans/scanner.ts'
import { checkRemoteResult } from './check-remote-result.ts'

type Deps = {
  remoteScans: RemoteScanStore
  contents: JobContents
  /** The kinds that this installation has engines for. */
  kinds: ScanKind[]
  resultWaiters: ResultWaiters
  notifications: Notifications
  reportFailure(error: unknown): void
  /** How long a remote scan may lie about until somebody takes it; 5 s unless told. */
  patienceMs?: number
}

type Order = { source: JobSource; asked: RemoteScanOptions; bytes: number; signal: AbortSignal }

/** For the look as a whole; the fetching of an address has as long again. */
const baseMs = 60_000
/** What the slowest content takes, and more. */
const bytesPerMs = 1000
/** A row outlives whoever waits for it by this: only what its node could not remove is left to the sweeper. */
const graceMs = 10_000
const maxWaiting = 1000
const lookEveryMs = 500
/** When nobody tells us. */
const lookOftenMs = 40

/** The end of a scan on a node without engines: others are asked for it, and waited for. */
export function makeRemoteScanClient(deps: Deps): Scanner & { countWaiting(): number } {
  const { patienceMs = 5000 } = deps
  let waiting = 0

  return { scanContent, scanUrl, countWaiting: () => waiting }

  async function scanContent(content: Content, { abortWhenClientLeaves, ...asked }: ScanOptions) {
    requireRoom(asked.kind)
    const known = { bytes: content.bytes, sha1: content.sha1, sha256: content.sha256 }
    const source = await toJobContent(content).persist()
    const { kind, contentName, flagsSexy } = asked
    const order = { source, asked: { kind, contentName, flagsSexy, accountId: null, known }, bytes: content.bytes }
    try {
      return checkRemoteResult(await ask({ ...order, signal: abortWhenClientLeaves?.() ?? never }, baseMs), known)
    } finally {
      // Nobody waits for that; what cannot be removed now is swept.
      deps.contents.remove(source).catch(deps.reportFailure)
    }
  }

  async function scanUrl(
    url: string,
    { kind, contentName, flagsSexy, accountId, signal }: Parameters<Scanner['scanUrl']>[1],
  ) {
    requireRoom(kind)
    const asked = { kind, contentName, flagsSexy, accountId, known: null }
    const order = { source: { at: 'url' as const, url }, asked, bytes: maxContentBytes[kind].sync, signal }
    return checkRemoteResult(await ask(order, 2 * baseMs), null)
  }

  function requireRoom(kind: ScanKind) {
    if (!deps.kinds.includes(kind)) throw new EngineDown('Scans of this kind are switched off')
    if (waiting >= maxWaiting) throw new EngineBusy(`${maxWaiting} others wait for workers already`)
  }

  async function ask({ source, asked, bytes, signal }: Order, withinMs: number): Promise<unknown> {
    const id = newUuid()
    const leftMs = withinMs + bytes / bytesPerMs
    const deadline = performance.now() + leftMs
    const over = new AbortController()
    const ended = AbortSignal.any([signal, over.signal])
    const wait = () => deps.resultWaiters.wait(id, deps.notifications.isListening() ? lookEveryMs : lookOftenMs, ended)
    let isTold = false
    waiting++
    try {
      const queue = toQueueName(asked.kind, source.at === 'url' ? anywhere : deps.contents.toStoreId(source))
      // Before anybody can know of it: the end may come at once.
      let rung = wait()
      await deps.remoteScans.add({ id, queue, source, asked, ttlMs: Math.ceil(leftMs) + graceMs })
      deps.notifications.send('remote-scans')
      for (;;) {
        await rung
        signal.throwIfAborted()
        rung = wait()
        const news = await deps.remoteScans.take(id)
        isTold = news.state !== 'open'
        if (news.state === 'done') return news.outcome
        if (news.state !== 'open') throw toFailure(news)
        requireHope(news)
        if (performance.now() > deadline) throw new EngineDown(`No worker was done within ${leftMs} ms`)
      }
    } finally {
      waiting--
      over.abort()
      if (!isTold) await deps.remoteScans.remove(id).catch(deps.reportFailure)
    }
  }

  /** Workers that are all full, or that are not there, are not waited for as long as one that is at work. */
  function requireHope({ attempts, freeMs }: { attempts: number; freeMs: number }) {
    if (attempts >= maxRemoteScanAttempts && freeMs > 0) throw new EngineDown(`${attempts} workers died of it`)
    if (freeMs <= patienceMs) return
    if (attempts === 0) throw new EngineBusy(`No worker has taken it within ${patienceMs} ms`)
    throw new EngineDown('Its worker died, and no other has taken it over')
  }
}

const never = new AbortController().signal

function toFailure(news: { state: 'failed'; failure: string } | { state: 'missing' }): EngineDown {
  if (news.state === 'missing') return new EngineDown('The remote scan is gone: the database has been restarted')
  return news.failure === 'busy' ? new EngineBusy('The worker has too much to do') : new EngineDown('The worker failed')
}

function toJobContent(content: Content): JobContent {
  if ('persist' in content) return content as JobContent
  throw new Error('Content that cannot be handed over was given to a node without engines')
}
