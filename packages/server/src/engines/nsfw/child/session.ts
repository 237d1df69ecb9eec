import { InferenceSession, Tensor } from 'onnxruntime-node'

/** How sure a model is of drawing, hentai, neutral, porn and sexy, in this order. */
export type Classes = number[]

export type Session = {
  /** RGB, the model's side squared. Blocks the process until it is done. */
  run(pixels: Buffer): Promise<Classes>
}

/** A model that is ready: it has run once, so that the first picture does not pay for what happens only then. */
export async function openSession(path: string, side: number): Promise<Session> {
  const session = await InferenceSession.create(path, {
    // One core per process; there are as many processes as the operator has cores to give.
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    // Errors only: what it finds unusual in a graph would push out of sight why a process ended.
    logSeverityLevel: 3,
  })
  const run = async (pixels: Buffer): Promise<Classes> => {
    const { scores } = await session.run({ pixels: new Tensor('uint8', pixels, [1, side, side, 3]) })
    if (!(scores?.data instanceof Float32Array)) throw new Error(`${path} gave no scores`)
    return [...scores.data]
  }
  await run(Buffer.alloc(side * side * 3))
  return { run }
}
