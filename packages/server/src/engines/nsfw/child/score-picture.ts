import type { ImageReport, Scores } from '../../../domain/ports/engines.ts'
import type { Shape } from '../models/model.ts'
import type { Pass, Picture, View } from '../pixels/open-picture.ts'
import { Refusal } from '../pixels/render.ts'

type FrameScores = Scores & { index: number }

type ModelRun = { shape: Shape; run(pixels: Buffer): Promise<Scores> }

/** The models of a profile. */
export type ModelRuns = {
  first: ModelRun
  second: ModelRun | undefined
  /** Whether the second model looks too. The scores of a view are the mean of both models then. */
  wantsSecond(first: Scores): boolean
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
      const isWhole = await scorePass(pass, { frames, models, budget })
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

/** Adds the scores of the views to `frames`. Returns false when the budget ended before all had theirs. */
async function scorePass(pass: Pass, { frames, models, budget }: Work): Promise<boolean> {
  const { first, second, wantsSecond } = models
  const suspicious: { view: View; scores: Scores }[] = []
  let isWhole = true
  await pass.prepare(pass.views, first.shape)
  for (const view of pass.views) {
    if (frames.length + suspicious.length > 0 && budget.isSpent()) {
      isWhole = false
      break
    }
    const scores = await first.run(await view.render(first.shape))
    if (second !== undefined && wantsSecond(scores)) suspicious.push({ view, scores })
    else frames.push({ index: view.index, ...scores })
  }
  if (second === undefined) return isWhole
  // The most suspicious first, so that a threat is found before the budget ends.
  suspicious.sort((a, b) => a.scores.clean - b.scores.clean)
  const canGoOn = () => frames.length === 0 || !budget.isSpent()
  const views = suspicious.map(({ view }) => view)
  if (canGoOn()) await pass.prepare(views, second.shape)
  for (const { view, scores } of suspicious) {
    if (!canGoOn()) return false
    frames.push({ index: view.index, ...toMean(scores, await second.run(await view.render(second.shape))) })
  }
  return isWhole
}

const toMean = (a: Scores, b: Scores): Scores => ({
  clean: (a.clean + b.clean) / 2,
  pornography: (a.pornography + b.pornography) / 2,
  sexy: (a.sexy + b.sexy) / 2,
})
