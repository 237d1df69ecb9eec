import type { ImageReport, Scores } from '../../../domain/ports/engines.ts'
import { env } from '../onnxruntime.ts'
import { openPicture } from '../pixels/open-picture.ts'
import type { Opening } from '../requests.ts'
import { sharp } from '../sharp.ts'
import { openModel, type Run } from './open-model.ts'
import { type ModelRuns, makeProcessorBudget, scorePicture } from './score-picture.ts'

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
