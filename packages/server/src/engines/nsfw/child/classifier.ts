import type { ImageReport, Scores } from '../../../domain/ports/engines.ts'
import type { Shape } from '../models/model.ts'
import { env } from '../onnxruntime.ts'
import { openPicture, type Pass, type Picture, type View } from '../pixels/open-picture.ts'
import { Refusal } from '../pixels/render.ts'
import type { Opening } from '../requests.ts'
import { sharp } from '../sharp.ts'
import { openModel, type Run } from './open-model.ts'

export type Classifier = {
  versions: Record<string, string>
  classify(bytes: Buffer): Promise<ImageReport>
}

/** From this unsafe score on, `balanced` looks closer at a picture: about 5 % of neutral pictures score higher. */
const closerSuspicion = 0.05

/**
 * From this unsafe score on, the second model looks at a part too. Scores of parts are lowered, so the mean of a lower
 * one and of the highest possible opinion of the second model reaches no threshold.
 */
const partSuspicion = 0.5

/**
 * A part needs 0.88 where a picture needs 0.7, and 0.94 where only one model looks, because with 0.88 more than 0.5 %
 * of neutral pictures are threats.
 */
const partExponents = { fast: 6, balanced: 2.8, thorough: 2.8 }

/** Opens both models, or the first one alone, according to the profile. */
export async function openClassifier({ models, profile, suspicion, budgetMs }: Opening): Promise<Classifier> {
  const { first, second } = models
  const runFirst = await openModel(first)
  let opened: Promise<Run> | undefined

  /** Opens the second model when it is needed: it takes 100 MB, and a process may never get a suspicious picture. */
  const openSecond = (): Promise<Run> => {
    if (second === undefined) throw new Error(`The profile ${profile} needs a second model`)
    opened ??= openModel(second)
    return opened
  }
  // A model of the operator is tried at the start, and takes so long to open that no picture should wait for it.
  if (profile === 'thorough' || second?.isOwn) await openSecond()

  const wantsSecond = ({ clean }: Scores, isPart: boolean) => {
    if (profile === 'fast') return false
    if (isPart) return 1 - clean >= partSuspicion
    return profile === 'thorough' || 1 - clean >= suspicion
  }
  const wantsCloser = ({ clean }: Scores) =>
    profile === 'thorough' || (profile === 'balanced' && 1 - clean >= closerSuspicion)
  const runs: ModelRuns = {
    first: { shape: first.form.shape, run: runFirst },
    second: second && { shape: second.form.shape, run: async (pixels) => (await openSecond())(pixels) },
    wantsSecond,
    wantsCloser,
    hasTilesBesideParts: profile === 'thorough',
    partExponent: partExponents[profile],
  }

  // Both models share a decoding only if they are the shipped ones: its size suits those.
  const hasSharedDecoding = !first.isOwn && second?.isOwn === false

  return {
    versions: { sharp: sharp.versions.sharp ?? '', vips: sharp.versions.vips, onnxruntime: env.versions.common },
    async classify(bytes) {
      const budget = makeProcessorBudget(budgetMs)
      const allSizes = profile === 'thorough'
      const picture = await openPicture(bytes, { both: allSizes && hasSharedDecoding, allSizes })
      if ('unscanned' in picture) return { unscanned: picture.unscanned }
      return scorePicture(picture, runs, budget)
    },
  }
}

type FrameScores = Scores & { index: number }

type ModelRun = { shape: Shape; run(pixels: Buffer): Promise<Scores> }

/** The models of a profile. */
export type ModelRuns = {
  first: ModelRun
  second: ModelRun | undefined
  /** Whether the second model looks too. The scores of a view are the mean of both models then. */
  wantsSecond(first: Scores, isPart: boolean): boolean
  /**
   * The models are less sure of parts than of whole pictures, and there are many parts: their unsafe score counts as
   * this power of it.
   */
  partExponent: number
  /** Whether tiles of the view, and the view turned to each side, are scored too. */
  wantsCloser(scores: Scores): boolean
  /** Whether a view that is looked at closer has its tiles also when it has other parts, such as panels. */
  hasTilesBesideParts: boolean
}

export type Budget = { isSpent(): boolean }

/** Counts the processor time of this process from now on, so that a busy machine costs a picture nothing. */
export function makeProcessorBudget(maxMs: number): Budget {
  const start = process.cpuUsage()
  return {
    isSpent() {
      const { user, system } = process.cpuUsage(start)
      return (user + system) / 1000 > maxMs
    },
  }
}

/**
 * Scores every view of a picture, or as many as the budget allows: the report then has a doubt, and the picture is not
 * clean. The first view is scored at any price, because a picture that took long to decode is scanned all the same.
 */
export async function scorePicture(picture: Picture, models: ModelRuns, budget: Budget): Promise<ImageReport> {
  const { isAnimated, framesTotal } = picture
  const frames: FrameScores[] = []
  try {
    for await (const pass of picture.passes()) {
      const isWhole = await scoreWithParts(pass, { frames, models, budget })
      if (!isWhole) return { frames, isAnimated, framesTotal, doubt: 'ScanLimitExceeded' }
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (frames.length === 0) return { unscanned: error.unscanned }
    return { frames, isAnimated, framesTotal, doubt: error.unscanned }
  }
  return { frames, isAnimated, framesTotal }
}

type Work = { frames: FrameScores[]; models: ModelRuns; budget: Budget }

/** From this score of pornography on, a view is a threat by any threshold, so that its parts change nothing. */
const certainThreat = 0.9

/** Scores the views of a pass, then their parts. Returns false when the budget ended before all had their scores. */
async function scoreWithParts(pass: Pass, work: Work): Promise<boolean> {
  const { frames, models, budget } = work
  const { scored, isWhole } = await scorePass(pass, work)
  frames.push(...scored.map(({ view, scores }) => ({ index: view.index, ...scores })))
  if (!isWhole) return false
  for (const { view, scores } of scored) {
    if (scores.pornography >= certainThreat) continue
    const { hasTilesBesideParts } = models
    const parts = await view.readParts({ isCloser: models.wantsCloser(scores), hasTilesBesideParts })
    if (parts.views.length > 0 && budget.isSpent()) return false
    const scoredParts = await scorePass(parts, { ...work, isPart: true })
    frames.push(
      ...scoredParts.scored.map(({ view, scores }) => ({ index: view.index, ...lower(scores, models.partExponent) })),
    )
    if (!scoredParts.isWhole) return false
  }
  return true
}

function lower({ pornography, sexy }: Scores, exponent: number): Scores {
  const factor = (pornography + sexy) ** (exponent - 1)
  const lowered = { pornography: pornography * factor, sexy: sexy * factor }
  return { clean: 1 - lowered.pornography - lowered.sexy, ...lowered }
}

type Scored = { view: View; scores: Scores }

async function scorePass(pass: Pass, { frames, models, budget, isPart = false }: Work & { isPart?: boolean }) {
  const { first, second, wantsSecond } = models
  const scored: Scored[] = []
  const suspicious: Scored[] = []
  let isWhole = true
  // The first view of a picture is scored at any price.
  const canGoOn = () => frames.length + scored.length === 0 || !budget.isSpent()
  await pass.prepare(pass.views, first.shape)
  for (const view of pass.views) {
    isWhole = (suspicious.length === 0 && canGoOn()) || !budget.isSpent()
    if (!isWhole) break
    const scores = await first.run(await view.render(first.shape))
    const isSuspicious = second !== undefined && wantsSecond(scores, isPart)
    ;(isSuspicious ? suspicious : scored).push({ view, scores })
  }
  if (second === undefined || suspicious.length === 0) return { scored, isWhole }
  // The most suspicious first, so that a threat is found before the budget ends.
  suspicious.sort((a, b) => a.scores.clean - b.scores.clean)
  const views = suspicious.map(({ view }) => view)
  if (canGoOn()) await pass.prepare(views, second.shape)
  for (const { view, scores } of suspicious) {
    if (!canGoOn()) return { scored, isWhole: false }
    scored.push({ view, scores: toMean(scores, await second.run(await view.render(second.shape))) })
  }
  return { scored, isWhole }
}

const toMean = (a: Scores, b: Scores): Scores => ({
  clean: (a.clean + b.clean) / 2,
  pornography: (a.pornography + b.pornography) / 2,
  sexy: (a.sexy + b.sexy) / 2,
})
