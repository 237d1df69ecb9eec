import type { Scores } from '../../../domain/ports/engines.ts'
import { commonThreshold, type ModelForm } from '../models/model.ts'
import { InferenceSession, Tensor } from '../onnxruntime.ts'
import type { ModelToOpen } from '../requests.ts'

/** Scores RGB pixels, 8 bits a channel, in the shape of the model. Blocks the process until it is done. */
export type Run = (pixels: Buffer) => Promise<Scores>

/** Opens a model and runs it once, so that the first picture does not wait for its initialization. */
export async function openModel({ path, form, isOwn }: ModelToOpen, maxMs = maxInferenceMs): Promise<Run> {
  const session = await InferenceSession.create(path, {
    // Each process uses one core; the operator decides how many processes there are.
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    // Only errors are logged: warnings about the graph would push the reason of a crash out of the kept part of stderr.
    logSeverityLevel: 3,
  })
  const [input, ...others] = session.inputNames
  const [output] = session.outputNames
  if (input === undefined || output === undefined) throw new Error('The model has no input or no output')
  if (others.length > 0) throw new Error(`The model has ${others.length + 1} inputs, and Assay can fill only one`)
  const toTensor = makeTensors(form)
  const run: Run = async (pixels) => {
    const results = await session.run({ [input]: toTensor(pixels) }, [output])
    const data = results[output]?.data
    if (!(data instanceof Float32Array)) throw new Error('The output of the model is not of 32-bit floating point')
    return toScores([...data], form)
  }
  const { side } = form.shape
  if (isOwn) await tryModel(run, side * side * channels, maxMs)
  else await run(Buffer.alloc(side * side * channels))
  return run
}

/** Processor time that a model of the operator may take for one picture. */
const maxInferenceMs = 5000

/** Throws when the model is too slow, or gives the same scores whatever it is shown. */
async function tryModel(run: Run, bytes: number, maxMs: number) {
  const noise = Buffer.from(Uint8Array.from({ length: bytes }, (_, i) => (Math.imul(i + 1, 0x9e3779b1) >>> 16) & 255))
  const seen = new Set<string>()
  for (const pixels of [Buffer.alloc(bytes), Buffer.alloc(bytes, 255), noise]) {
    const start = process.cpuUsage()
    seen.add(JSON.stringify(await run(pixels)))
    const { user, system } = process.cpuUsage(start)
    const ms = Math.round((user + system) / 1000)
    if (ms > maxMs)
      throw new Error(`The model took ${ms} ms of processor time for one picture; at most ${maxMs} are allowed`)
  }
  if (seen.size === 1) throw new Error('The model gives the same scores to a black, a white and a noisy picture')
}

const channels = 3

/** Makes the function that arranges pixels as the model takes them. */
function makeTensors({ shape: { side }, input }: ModelForm): (pixels: Buffer) => Tensor {
  const area = side * side
  const isPlanar = input.layout === 'NCHW'
  const dims = isPlanar ? [1, channels, side, side] : [1, side, side, channels]
  if (input.type === 'uint8' && !isPlanar) return (pixels) => new Tensor('uint8', pixels, dims)
  // Each channel has a table, because dividing 440,000 values takes longer than looking them up.
  const tables = Array.from({ length: channels }, (_, channel) => {
    if (input.type === 'uint8') return Uint8Array.from({ length: 256 }, (_, value) => value)
    const [mean = 0, deviation = 1] = [input.mean[channel], input.deviation[channel]]
    return Float32Array.from({ length: 256 }, (_, value) => (value / 255 - mean) / deviation)
  })
  return (pixels) => {
    const values = input.type === 'uint8' ? new Uint8Array(area * channels) : new Float32Array(area * channels)
    for (const [channel, table] of tables.entries()) {
      let to = isPlanar ? channel * area : channel
      const step = isPlanar ? 1 : channels
      for (let from = channel; from < area * channels; from += channels, to += step) {
        values[to] = table[pixels[from] ?? 0] ?? 0
      }
    }
    return values instanceof Float32Array ? new Tensor('float32', values, dims) : new Tensor('uint8', values, dims)
  }
}

/** Joins the numbers of a model to scores that sum to 1. Throws when they are no probabilities. */
function toScores(output: number[], { activation, labels, threshold }: ModelForm): Scores {
  if (output.length !== labels.length)
    throw new Error(`The output has ${output.length} numbers, and the manifest names ${labels.length} labels`)
  if (!output.every(Number.isFinite)) throw new Error('The output of the model is not finite')
  const values = activate(output, activation)
  const scores: Scores = { clean: 0, pornography: 0, sexy: 0 }
  for (const [i, label] of labels.entries()) scores[label] += values[i] ?? 0
  if (!labels.includes('clean')) scores.clean = Math.max(0, 1 - scores.pornography - scores.sexy)
  const sum = scores.clean + scores.pornography + scores.sexy
  if (!(sum > 0) || values.some((value) => value < 0)) throw new Error('The output of the model is no probability')
  return scale({ clean: scores.clean / sum, pornography: scores.pornography / sum, sexy: scores.sexy / sum }, threshold)
}

function activate(output: number[], activation: ModelForm['activation']): number[] {
  if (activation === 'none') return output
  if (activation === 'sigmoid') return output.map((value) => 1 / (1 + Math.exp(-value)))
  const largest = Math.max(...output)
  const powers = output.map((value) => Math.exp(value - largest))
  const sum = powers.reduce((total, power) => total + power, 0)
  return powers.map((power) => power / sum)
}

/** Moves the threshold of the model to the common one, in two straight lines, so that the order of scores stays. */
function scale(scores: Scores, threshold: number): Scores {
  const unsafe = scores.pornography + scores.sexy
  if (threshold === commonThreshold || unsafe <= 0) return scores
  const scaled =
    unsafe < threshold
      ? (unsafe / threshold) * commonThreshold
      : 1 - ((1 - unsafe) / (1 - threshold)) * (1 - commonThreshold)
  const factor = scaled / unsafe
  return { clean: 1 - scaled, pornography: scores.pornography * factor, sexy: scores.sexy * factor }
}
