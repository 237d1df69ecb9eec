import sharp from 'sharp'
import type { ImageReport, Scores } from '../../../domain/ports/engines.ts'
import { env } from '../onnxruntime.ts'
import { type Frame, openPicture, type Picture } from '../pixels/open-picture.ts'
import { Refusal } from '../pixels/render.ts'
import type { Opening } from '../requests.ts'
import { openModel, type Run } from './open-model.ts'

export type Classifier = {
  versions: Record<string, string>
  classify(bytes: Buffer): Promise<ImageReport>
}

/** Opens both models, or the first one alone, according to the profile. */
export async function openClassifier({ models, profile, suspicion }: Opening): Promise<Classifier> {
  const { first, second } = models
  const runFirst = await openModel(first)
  let opened: Promise<Run> | undefined

  /** Opens the second model when it is needed: it takes 100 MB, and a process may never get a suspicious picture. */
  const openSecond = (): Promise<Run> => {
    if (second === undefined) throw new Error(`The profile ${profile} needs a second model`)
    opened ??= openModel(second)
    return opened
  }
  if (profile === 'thorough') await openSecond()

  const classifyFrame = async (frame: Frame): Promise<Scores> => {
    const scores = await runFirst(await frame.render(first.form.shape))
    const isClear = profile === 'fast' || (profile === 'balanced' && 1 - scores.clean < suspicion)
    if (isClear || second === undefined) return scores
    const runSecond = await openSecond()
    return toMean(scores, await runSecond(await frame.render(second.form.shape)))
  }

  const classifyPicture = async ({ frames, isAnimated }: Picture): Promise<ImageReport> => {
    const scores: (Scores & { index: number })[] = []
    for (const frame of frames) scores.push({ index: frame.index, ...(await classifyFrame(frame)) })
    return { frames: scores, isAnimated }
  }

  return {
    versions: { sharp: sharp.versions.sharp ?? '', vips: sharp.versions.vips, onnxruntime: env.versions.common },
    async classify(bytes) {
      const picture = await openPicture(bytes, { both: profile === 'thorough' })
      if ('unscanned' in picture) return { unscanned: picture.unscanned }
      try {
        return await classifyPicture(picture)
      } catch (error) {
        // The second model's view is decoded separately, and decoding may fail.
        if (error instanceof Refusal) return { unscanned: error.unscanned }
        throw error
      }
    },
  }
}

const toMean = (a: Scores, b: Scores): Scores => ({
  clean: (a.clean + b.clean) / 2,
  pornography: (a.pornography + b.pornography) / 2,
  sexy: (a.sexy + b.sexy) / 2,
})
