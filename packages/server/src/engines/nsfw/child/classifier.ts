import sharp from 'sharp'
import type { ImageReport, Scores } from '../../../domain/ports/engines.ts'
import { env, InferenceSession, Tensor } from '../onnxruntime.ts'
import { type Frame, openPicture, type Picture } from '../pixels/open-picture.ts'
import { Refusal } from '../pixels/render.ts'
import type { Opening } from '../requests.ts'

export type Classifier = {
  versions: Record<string, string>
  classify(bytes: Buffer): Promise<ImageReport>
}

/** How sure a model is of drawing, hentai, neutral, porn and sexy, in this order. */
type Classes = number[]

/** Runs a model on RGB pixels, the model's side squared. Blocks the process until it is done. */
type Run = (pixels: Buffer) => Promise<Classes>

const smallSide = 224
const largeSide = 299

/** Opens both models, or the small one alone, according to the profile. */
export async function openClassifier({ models, profile, suspicion }: Opening): Promise<Classifier> {
  const runSmall = await openModel(models.small, smallSide)
  let large: Promise<Run> | undefined

  /** Opens the large model when it is needed: it takes 100 MB, and a process may never get a suspicious picture. */
  const getLarge = (): Promise<Run> => {
    if (models.large === undefined) throw new Error(`The profile ${profile} needs a second model`)
    large ??= openModel(models.large, largeSide)
    return large
  }
  if (profile === 'thorough') await getLarge()

  const classifyFrame = async (frame: Frame): Promise<Classes> => {
    const first = await runSmall(frame.small)
    const isClear = profile === 'fast' || (profile === 'balanced' && 1 - toScores(first).clean < suspicion)
    if (isClear) return first
    const runLarge = await getLarge()
    const second = await runLarge(await frame.large())
    return first.map((score, i) => (score + (second[i] ?? 0)) / 2)
  }

  const classifyPicture = async ({ frames, isAnimated }: Picture): Promise<ImageReport> => {
    const scores: (Scores & { index: number })[] = []
    for (const frame of frames) scores.push({ index: frame.index, ...toScores(await classifyFrame(frame)) })
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
        // The large model's view is decoded separately, and decoding may fail.
        if (error instanceof Refusal) return { unscanned: error.unscanned }
        throw error
      }
    },
  }
}

/** Opens a model and runs it once, so that the first picture does not wait for its initialization. */
async function openModel(path: string, side: number): Promise<Run> {
  const session = await InferenceSession.create(path, {
    // One core for each process; the operator decides how many processes there are.
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    // Only errors are logged: warnings about the graph would push the reason of a crash out of the kept part of stderr.
    logSeverityLevel: 3,
  })
  const run: Run = async (pixels) => {
    const { scores } = await session.run({ pixels: new Tensor('uint8', pixels, [1, side, side, 3]) })
    if (!(scores?.data instanceof Float32Array)) throw new Error(`${path} gave no scores`)
    return [...scores.data]
  }
  await run(Buffer.alloc(side * side * 3))
  return run
}

/** Callers do not tell drawings from photographs, so the classes are joined. */
function toScores([drawing = 0, hentai = 0, neutral = 0, porn = 0, sexy = 0]: Classes): Scores {
  const sum = drawing + hentai + neutral + porn + sexy
  if (!(sum > 0)) throw new Error('A model gave no scores')
  return { clean: (neutral + drawing) / sum, pornography: (porn + hentai) / sum, sexy: sexy / sum }
}
