import type { Content } from '../content/content.ts'
import { EngineBusy, EngineDown, type ImageEngine, type ImageReport } from '../ports/engines.ts'
import { decideImage } from './image-verdict.ts'
import type { Assessment } from './malware-scan.ts'
import { findTestReport } from './test-images.ts'
import type { VersionedCache } from './versioned-cache.ts'

type Deps = {
  /** Undefined where none could be started. */
  findEngine(): ImageEngine | undefined
  cache: VersionedCache<ImageReport>
  threshold: number
  /** Our own test images get the verdict they stand for. */
  knowsTestImages: boolean
}

/** For its turn; what a picture may take from then on is the engine's to say. */
const patienceMs = 30_000

/** A verdict on a picture, from the cache or the engine, with what it rests on. */
export function makeImageScan({ findEngine, cache, threshold, knowsTestImages }: Deps) {
  return {
    async assess(content: Content, { flagsSexy }: { flagsSexy: boolean }): Promise<Assessment> {
      const known = knowsTestImages ? findTestReport(content.sha256) : undefined
      const { report, version } = known ?? (await classify(content))
      const { status, signals, metadata } = decideImage(report, { threshold, flagsSexy })
      return { status, signals, metadata: { ...metadata, engine_versions: version } }
    },
  }

  async function classify(content: Content): Promise<{ report: ImageReport; version: string }> {
    const engine = findEngine()
    const state = engine?.findState()
    if (engine === undefined || state === undefined) throw new EngineDown('There is no image engine')
    const { version, verdictVersion } = state
    const kept = verdictVersion === undefined ? undefined : cache.find(content.sha256, verdictVersion)
    if (kept !== undefined) return { report: kept, version }
    const report = await withPatience((signal) => engine.classify(content, signal))
    // What ran out of time may go better another time.
    if (verdictVersion !== undefined && 'frames' in report) cache.keep(content.sha256, verdictVersion, report)
    return { report, version }
  }
}

async function withPatience<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const waiting = new AbortController()
  const timer = setTimeout(() => waiting.abort(new EngineBusy(`No turn within ${patienceMs} ms`)), patienceMs)
  try {
    return await work(waiting.signal)
  } finally {
    clearTimeout(timer)
  }
}

export type ImageScan = ReturnType<typeof makeImageScan>
