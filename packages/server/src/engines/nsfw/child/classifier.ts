import { env } from 'onnxruntime-node'
import sharp from 'sharp'
import type { ImageReport, Scores } from '../../../domain/ports/engines.ts'
import { type Frame, openPicture, type Picture } from '../pixels/open-picture.ts'
import { Refusal } from '../pixels/refusal.ts'
import type { Opening } from '../wire.ts'
import { type Classes, openSession, type Session } from './session.ts'

export type Classifier = {
  versions: Record<string, string>
  classify(bytes: Buffer): Promise<ImageReport>
}

const smallSide = 224
const largeSide = 299

/** Both models, or the small one alone, as the profile says. */
export async function openClassifier({ models, profile, suspicion }: Opening): Promise<Classifier> {
  const small = await openSession(models.small, smallSide)
  let large: Promise<Session> | undefined

  /** The second opinion takes 100 MB: a process that meets nothing suspicious does without. */
  const getLarge = (): Promise<Session> => {
    if (models.large === undefined) throw new Error(`The profile ${profile} needs a second model`)
    large ??= openSession(models.large, largeSide)
    return large
  }
  if (profile === 'thorough') await getLarge()

  const look = async (frame: Frame): Promise<Classes> => {
    const first = await small.run(frame.small)
    const isClear = profile === 'fast' || (profile === 'balanced' && 1 - toScores(first).clean < suspicion)
    if (isClear) return first
    const { run } = await getLarge()
    const second = await run(await frame.large())
    return first.map((score, i) => (score + (second[i] ?? 0)) / 2)
  }

  const lookAtAll = async ({ frames, isAnimated }: Picture): Promise<ImageReport> => {
    const scores: (Scores & { index: number })[] = []
    for (const frame of frames) scores.push({ index: frame.index, ...toScores(await look(frame)) })
    return { frames: scores, isAnimated }
  }

  return {
    versions: { sharp: sharp.versions.sharp ?? '', vips: sharp.versions.vips, onnxruntime: env.versions.common },
    async classify(bytes) {
      const picture = await openPicture(bytes, { both: profile === 'thorough' })
      if ('unscanned' in picture) return { unscanned: picture.unscanned }
      try {
        return await lookAtAll(picture)
      } catch (error) {
        // The second opinion decodes once more.
        if (error instanceof Refusal) return { unscanned: error.unscanned }
        throw error
      }
    },
  }
}

/** Drawn or photographed makes no difference to who asks. */
function toScores([drawing = 0, hentai = 0, neutral = 0, porn = 0, sexy = 0]: Classes): Scores {
  const sum = drawing + hentai + neutral + porn + sexy
  if (!(sum > 0)) throw new Error('A model gave no scores')
  return { clean: (neutral + drawing) / sum, pornography: (porn + hentai) / sum, sexy: sexy / sum }
}
