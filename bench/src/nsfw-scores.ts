import * as tf from '@tensorflow/tfjs'
import '@tensorflow/tfjs-backend-wasm'
import { load } from 'nsfwjs'
import { toInputSize } from '../../packages/server/src/engines/nsfw/models/convert.ts'
import type { ModelName } from '../../packages/server/src/engines/nsfw/models/manifest.ts'
import type { Model } from '../../packages/server/src/engines/nsfw/models/model.ts'
import { InferenceSession, Tensor } from '../../packages/server/src/engines/nsfw/onnxruntime.ts'
import { readPixels, readWhole } from './nsfw-pixels.ts'

/** Scores of the classes of nsfwjs for each picture. */
export type ClassScores = Float32Array[]

/** Scores by each converted model on one thread; they differ in precision only. */
export async function scoreWithModels(name: ModelName, models: Model[], pictures: string[]): Promise<ClassScores[]> {
  const options = { intraOpNumThreads: 1, interOpNumThreads: 1 }
  const sessions = await Promise.all(models.map(({ path }) => InferenceSession.create(path, options)))
  const scores: ClassScores[] = models.map(() => [])
  const size = toInputSize(name)
  for (const picture of pictures) {
    const pixels = new Tensor('uint8', await readPixels(picture, name), [1, size, size, 3])
    for (const [i, session] of sessions.entries()) {
      const found = await session.run({ pixels })
      scores[i]?.push(Float32Array.from(found.scores?.data as Float32Array))
    }
  }
  for (const session of sessions) await session.release()
  return scores
}

const peers = { 'mobilenet-v2-mid': 'MobileNetV2Mid', 'inception-v3': 'InceptionV3' } as const

/** Scores by nsfwjs on the same pixels, which it does not resize because they have the size of its input. */
export async function scoreWithNsfwjs(name: ModelName, size: number, pictures: string[]): Promise<ClassScores> {
  if (!(await tf.setBackend('wasm'))) throw new Error('TensorFlow.js has no backend wasm')
  const model = await loadQuietly(name, size)
  const scores: ClassScores = []
  for (const picture of pictures) {
    const pixels = tf.tensor3d(await readPixels(picture, name), [size, size, 3], 'int32')
    const found = model.infer(pixels)
    scores.push(Float32Array.from(await found.data()))
    tf.dispose([pixels, found])
  }
  model.dispose()
  return scores
}

/** Scores by nsfwjs from the whole picture, with its own sampling. */
export async function classifyWithNsfwjs(name: ModelName, size: number, pictures: string[]): Promise<ClassScores> {
  if (!(await tf.setBackend('wasm'))) throw new Error('TensorFlow.js has no backend wasm')
  const model = await loadQuietly(name, size)
  const scores: ClassScores = []
  for (const picture of pictures) {
    const { data, info } = await readWhole(picture)
    const pixels = tf.tensor3d(new Uint8Array(data), [info.height, info.width, 3], 'int32')
    const found = model.infer(pixels)
    scores.push(Float32Array.from(await found.data()))
    tf.dispose([pixels, found])
  }
  model.dispose()
  return scores
}

/** Silences nsfwjs, which prints to standard output. */
async function loadQuietly(name: ModelName, size: number) {
  const { info } = console
  console.info = console.error
  try {
    return await load(peers[name], { size })
  } finally {
    console.info = info
  }
}
