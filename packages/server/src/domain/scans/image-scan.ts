import type { Content } from '../content/content.ts'
import {
  EngineBusy,
  EngineDown,
  type ImageEngine,
  type ImageReport,
  type JobTurn,
  type Scores,
  type Unscanned,
} from '../ports/engines.ts'
import type { ScanOptions, Verdict, VersionedCache } from './scan.ts'

type Deps = {
  /** Undefined when no image engine could be started. */
  findEngine(): ImageEngine | undefined
  cache: VersionedCache<ImageReport>
  threshold: number
  /** Gives the test images of Assay the verdict they stand for, without an engine. */
  knowsTestImages: boolean
}

type ImageOptions = Pick<ScanOptions, 'flagsSexy' | 'accountId' | 'job'>

/**
 * How long the picture of a caller waits for a free image process; a background job waits for as long as it takes. The
 * engine itself bounds the time from then on.
 */
const turnTimeoutMs = 30_000

/** Assesses a picture for NSFW content, with the scores from the cache or from the engine. */
export function makeImageScan({ findEngine, cache, threshold, knowsTestImages }: Deps) {
  return {
    async assess(content: Content, { flagsSexy, accountId, job }: ImageOptions): Promise<Verdict> {
      const testReport = knowsTestImages ? findTestReport(content.sha256) : undefined
      const { report, version } = testReport ?? (await classify(content, accountId, job))
      const { metadata, ...verdict } = decideImage(report, { threshold, flagsSexy })
      return { ...verdict, metadata: { ...metadata, engine_versions: version } }
    },
  }

  async function classify(
    content: Content,
    accountId: string | null,
    job: JobTurn | undefined,
  ): Promise<{ report: ImageReport; version: string }> {
    const engine = findEngine()
    const state = engine?.findState()
    if (engine === undefined || state === undefined) throw new EngineDown('There is no image engine')
    const { version, verdictVersion } = state
    const key = { accountId, sha256: content.sha256 }
    const cached = verdictVersion === undefined ? undefined : cache.find(key, verdictVersion)
    if (cached !== undefined) return { report: cached, version }
    const report = await (job === undefined
      ? withTurnTimeout((signal) => engine.classify(content, { signal }))
      : engine.classify(content, { signal: neverAborted, job }))
    // A picture that exceeded a limit is not cached: the next scan may succeed.
    const isWhole = 'frames' in report && report.doubt === undefined
    if (verdictVersion !== undefined && isWhole) cache.set(key, verdictVersion, report)
    return { report, version }
  }
}

const neverAborted = new AbortController().signal

async function withTurnTimeout<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const abortAsBusy = () => controller.abort(new EngineBusy(`No image process was free within ${turnTimeoutMs} ms`))
  const timer = setTimeout(abortAsBusy, turnTimeoutMs)
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
  }
}

export type ImageScan = ReturnType<typeof makeImageScan>

export type ImagePolicy = {
  /** The score of unsafe content from which on a picture is a threat. */
  threshold: number
  /** Whether the score of sexy content counts as unsafe. */
  flagsSexy: boolean
}

/** Chosen by their effect on neutral pictures: docs/decisions/0014-image-thresholds.md. */
export const imageThresholds = { strict: 0.5, default: 0.7, lenient: 0.85 }

/**
 * The frame with the highest unsafe score decides. A picture of which a part was not classified can only be a threat or
 * an error. Pornography and sexy are summed, because the models confuse the two in one picture of twenty; the larger
 * score gives the label.
 */
export function decideImage(report: ImageReport, { threshold, flagsSexy }: ImagePolicy): Verdict {
  if ('unscanned' in report) return toError(report.unscanned)
  const toUnsafe = ({ pornography, sexy }: Scores) => pornography + (flagsSexy ? sexy : 0)
  const worstFrame = report.frames.reduce((previous, frame) =>
    toUnsafe(frame) > toUnsafe(previous) ? frame : previous,
  )
  const isThreat = toUnsafe(worstFrame) >= threshold
  const label = flagsSexy && worstFrame.sexy > worstFrame.pornography ? 'sexy' : 'pornography'
  if (!isThreat && report.doubt !== undefined) return toError(report.doubt)
  // A frame of which several views were classified is listed several times.
  const frames = new Set(report.frames.map(({ index }) => index)).size
  return {
    status: isThreat ? 'threat' : 'clean',
    signals: isThreat ? [`Classification:${label}`] : [],
    metadata: {
      ...toDecimals(worstFrame),
      ...(report.isAnimated && {
        frames_total: String(report.framesTotal),
        frames_scanned: String(frames),
        frame_index: String(worstFrame.index),
      }),
    },
  }
}

const toError = (unscanned: Unscanned): Verdict => ({ status: 'error', signals: [`Error:${unscanned}`], metadata: {} })

const decimals = 4

/** Rounds the scores so that they still sum to 1: the largest takes the remainder. */
function toDecimals({ clean, pornography, sexy }: Scores): Record<string, string> {
  const scale = 10 ** decimals
  const units = [clean, pornography, sexy].map((score) => Math.round(score * scale))
  const largest = units.indexOf(Math.max(...units))
  units[largest] = scale - units.reduce((sum, unit, i) => (i === largest ? sum : sum + unit), 0)
  const [forClean, forPornography, forSexy] = units.map((unit) => (unit / scale).toFixed(decimals))
  return {
    classification_clean: forClean ?? '',
    classification_pornography: forPornography ?? '',
    classification_sexy: forSexy ?? '',
  }
}

type TestLabel = 'pornography' | 'sexy'

/**
 * Test images by their SHA-256: cards of plain text (docs/test-images) that get the verdict they stand for, as EICAR
 * does for viruses, so that integrators can test how their software reacts.
 */
const testImages: Record<string, TestLabel> = {
  b04e0575aa073f717811a0598e17d6fbae66a39e8dc24c5c48b53a81335f5365: 'pornography',
  '28e20547c80c6a072c9845ff97c764f7d56fb1189dd55f3aa1206068db5685b2': 'sexy',
}

export const testScores: Record<TestLabel, Scores> = {
  pornography: { clean: 0.01, pornography: 0.97, sexy: 0.02 },
  sexy: { clean: 0.01, pornography: 0.02, sexy: 0.97 },
}

export const findTestImage = (sha256: string): TestLabel | undefined => testImages[sha256]

function findTestReport(sha256: string): { report: ImageReport; version: string } | undefined {
  const label = findTestImage(sha256)
  if (label === undefined) return undefined
  const frames = [{ index: 0, ...testScores[label] }]
  return { report: { frames, framesTotal: 1, isAnimated: false }, version: 'Assay test image' }
}
