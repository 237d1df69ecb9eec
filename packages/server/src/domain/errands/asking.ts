import { maxContentBytes, type ScanKind } from '@assay/contract'
import { v7 as newUuid } from 'uuid'
import type { Content } from '../content/content.ts'
import type { JobContents, LastingContent } from '../ports/content-store.ts'
import { type ErrandAsked, type ErrandStore, maxErrandAttempts } from '../ports/errand-store.ts'
import type { JobSource } from '../ports/job-store.ts'
import { EngineBusy, EngineDown } from '../ports/scan-engine.ts'
import type { WakeUps } from '../ports/wake-ups.ts'
import type { Asked } from '../scans/assess.ts'
import type { Bell } from '../scans/bell.ts'
import { anywhere, toLane } from '../scans/lanes.ts'
import type { Outcomes } from '../scans/outcome.ts'
import { checkOutcome } from './check-outcome.ts'

type Deps = {
  errands: ErrandStore
  contents: JobContents
  /** The kinds that this installation has engines for. */
  kinds: ScanKind[]
  bell: Bell
  wakeUps: WakeUps
  reportFailure(error: unknown): void
  /** How long an errand may lie about until somebody takes it; 5 s unless told. */
  patienceMs?: number
}

type Order = { source: JobSource; asked: ErrandAsked; bytes: number; signal: AbortSignal }

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
export function makeAsking(deps: Deps): Outcomes & { countWaiting(): number } {
  const { patienceMs = 5000 } = deps
  let waiting = 0

  return { ofContent, ofUrl, countWaiting: () => waiting }

  async function ofContent(content: Content, { untilGone, ...asked }: Asked) {
    requireRoom(asked.kind)
    const known = { bytes: content.bytes, sha1: content.sha1, sha256: content.sha256 }
    const source = await toLasting(content).handOver()
    const { kind, contentName, flagsSexy } = asked
    const order = { source, asked: { kind, contentName, flagsSexy, accountId: null, known }, bytes: content.bytes }
    try {
      return checkOutcome(await ask({ ...order, signal: untilGone?.() ?? never }, baseMs), known)
    } finally {
      // Nobody waits for that; what cannot be removed now is swept.
      deps.contents.remove(source).catch(deps.reportFailure)
    }
  }

  async function ofUrl(
    url: string,
    { kind, contentName, flagsSexy, accountId, signal }: Parameters<Outcomes['ofUrl']>[1],
  ) {
    requireRoom(kind)
    const asked = { kind, contentName, flagsSexy, accountId, known: null }
    const order = { source: { at: 'url' as const, url }, asked, bytes: maxContentBytes[kind].sync, signal }
    return checkOutcome(await ask(order, 2 * baseMs), null)
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
    const wait = () => deps.bell.wait(id, deps.wakeUps.isListening() ? lookEveryMs : lookOftenMs, ended)
    let isTold = false
    waiting++
    try {
      const lane = toLane(asked.kind, source.at === 'url' ? anywhere : deps.contents.toPlace(source))
      // Before anybody can know of it: the end may come at once.
      let rung = wait()
      await deps.errands.add({ id, lane, source, asked, ttlMs: Math.ceil(leftMs) + graceMs })
      deps.wakeUps.tell('errands')
      for (;;) {
        await rung
        signal.throwIfAborted()
        rung = wait()
        const news = await deps.errands.take(id)
        isTold = news.state !== 'open'
        if (news.state === 'done') return news.outcome
        if (news.state !== 'open') throw toFailure(news)
        requireHope(news)
        if (performance.now() > deadline) throw new EngineDown(`No worker was done within ${leftMs} ms`)
      }
    } finally {
      waiting--
      over.abort()
      if (!isTold) await deps.errands.remove(id).catch(deps.reportFailure)
    }
  }

  /** Workers that are all full, or that are not there, are not waited for as long as one that is at work. */
  function requireHope({ attempts, freeMs }: { attempts: number; freeMs: number }) {
    if (attempts >= maxErrandAttempts && freeMs > 0) throw new EngineDown(`${attempts} workers died of it`)
    if (freeMs <= patienceMs) return
    if (attempts === 0) throw new EngineBusy(`No worker has taken it within ${patienceMs} ms`)
    throw new EngineDown('Its worker died, and no other has taken it over')
  }
}

const never = new AbortController().signal

function toFailure(news: { state: 'failed'; failure: string } | { state: 'missing' }): EngineDown {
  if (news.state === 'missing') return new EngineDown('The errand is gone: the database has been restarted')
  return news.failure === 'busy' ? new EngineBusy('The worker has too much to do') : new EngineDown('The worker failed')
}

function toLasting(content: Content): LastingContent {
  if ('handOver' in content) return content as LastingContent
  throw new Error('Content that cannot be handed over was given to a node without engines')
}
