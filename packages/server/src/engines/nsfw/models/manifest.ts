import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { kernels, labels, type ModelForm } from './model.ts'

export const modelNames = ['mobilenet-v2-mid', 'inception-v3'] as const
export const encodings = ['int8', 'uint8', 'fp32'] as const

export type ModelName = (typeof modelNames)[number]
export type Precision = 'int8' | 'fp32'

/** The type in which a file holds its weights. `int8` and `uint8` give the same scores on different processors. */
export type Encoding = (typeof encodings)[number]

/** A file that `convert` writes. The service refuses a file of this name with other bytes. */
export type ModelFile = {
  name: ModelName
  encoding: Encoding
  file: string
  bytes: number
  sha256: string
  /** The side of the square of pixels that the model takes. */
  size: number
}

export type Manifest = {
  licence: string
  /** The package that the weights come from. `sources` are its files that a model is made of. */
  source: { package: string; version: string; homepage: string }
  models: (ModelFile & { sources: { file: string; sha256: string }[] })[]
}

/** Holds what is committed: the manifest and the activation ranges. */
export const modelsDir = join(import.meta.dirname, '../../../../models')

/** Holds the models that were converted on this machine. */
export const builtDir = join(modelsDir, 'built')

export const manifestPath = join(modelsDir, 'manifest.json')

export async function readManifest(): Promise<Manifest> {
  return JSON.parse(await readFile(manifestPath, 'utf8'))
}

export function getModelFile({ models }: Manifest, name: ModelName, encoding: Encoding): ModelFile {
  const found = models.find((model) => model.name === name && model.encoding === encoding)
  if (found === undefined) throw new Error(`The manifest of models knows no ${encoding} ${name}`)
  return found
}

export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash)
  return hash.digest('hex')
}

/** Undefined when the file cannot be read. */
export async function findChecksum(path: string): Promise<{ bytes: number; sha256: string } | undefined> {
  try {
    const { size } = await stat(path)
    return { bytes: size, sha256: await hashFile(path) }
  } catch {
    return undefined
  }
}

/** The description of a model that an operator brings, after all of it was checked. */
export type OwnManifest = {
  name: string
  version: string
  licence: string
  source: string | undefined
  /** Name of the ONNX file beside the manifest. */
  file: string
  sha256: string
  form: ModelForm
}

/** A model of an operator or its manifest cannot be used; the message is a sentence for the operator. */
export class ModelRefused extends Error {}

/** Operators' manifests are a few hundred bytes. */
export const maxManifestBytes = 65_536

/** Reads the text of an operator's manifest. Throws `ModelRefused` with the first thing that is wrong, misspelt keys included. */
export function parseOwnManifest(text: string): OwnManifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ModelRefused('The manifest is not JSON.')
  }
  const known = ['name', 'version', 'licence', 'source', 'file', 'sha256', 'input', 'output', 'threshold']
  const manifest = readObject(value, 'the manifest', known)
  const name = readText(manifest, 'name', /^[a-z0-9][a-z0-9.-]{0,63}$/, 'lower-case letters, digits, dots and hyphens')
  if (modelNames.some((shipped) => shipped === name))
    throw new ModelRefused(`${name} is the name of a model of Assay: choose another.`)
  return {
    name,
    version: readText(manifest, 'version', /^[\w.+-]{1,64}$/, 'letters, digits, dots and hyphens'),
    licence: readText(manifest, 'licence', /^[^\p{C}]{1,200}$/u, 'the name of a licence'),
    source: manifest.source === undefined ? undefined : readText(manifest, 'source', /^[^\p{C}]{1,500}$/u, 'one line'),
    file: readText(manifest, 'file', /^\w[\w.-]{0,199}\.onnx$/, 'the name of an .onnx file beside the manifest'),
    sha256: readText(manifest, 'sha256', /^[0-9a-f]{64}$/, 'the SHA-256 of the file, 64 lower-case hexadecimal digits'),
    form: readForm(manifest),
  }
}

/** The operator's manifest as it is stored beside the model. */
export const toManifestText = ({ name, version, licence, source, file, sha256, form }: OwnManifest): string => {
  const { shape, input, activation, labels, threshold } = form
  const { mean, deviation, ...rest } = input
  const floats = input.type === 'float32' ? { mean, deviation } : {}
  const described = { size: shape.side, resize: shape.kernel, ...rest, ...floats }
  const output = { activation, labels }
  return `${JSON.stringify({ name, version, licence, source, file, sha256, input: described, output, threshold }, null, 2)}\n`
}

type Fields = Record<string, unknown>

function readForm(manifest: Fields): ModelForm {
  const input = readObject(manifest.input, 'input', ['size', 'resize', 'type', 'layout', 'mean', 'deviation'])
  const output = readObject(manifest.output, 'output', ['activation', 'labels'])
  const side = readNumber(input.size, 'input.size', { least: 32, most: 1024 })
  if (!Number.isInteger(side)) throw new ModelRefused('input.size must be a whole number.')
  return {
    shape: { side, kernel: readChoice(input.resize, 'input.resize', kernels) },
    input: readInput(input),
    activation: readChoice(output.activation, 'output.activation', ['softmax', 'sigmoid', 'none'] as const),
    labels: readLabels(output.labels),
    threshold: readNumber(manifest.threshold, 'threshold', { least: 0.01, most: 0.99 }),
  }
}

function readInput(input: Fields): ModelForm['input'] {
  const type = readChoice(input.type, 'input.type', ['uint8', 'float32'] as const)
  const layout = readChoice(input.layout, 'input.layout', ['NHWC', 'NCHW'] as const)
  if (type === 'float32') {
    const mean = readChannels(input.mean, 'input.mean', { least: -10, most: 10 })
    return {
      type,
      layout,
      mean,
      deviation: readChannels(input.deviation, 'input.deviation', { least: 1e-4, most: 10 }),
    }
  }
  if (input.mean !== undefined || input.deviation !== undefined)
    throw new ModelRefused('input.mean and input.deviation do not apply to a model that takes uint8.')
  return { type, layout, mean: [0, 0, 0], deviation: [1, 1, 1] }
}

const maxLabels = 1000

function readLabels(value: unknown): ModelForm['labels'] {
  if (!Array.isArray(value) || value.length < 1 || value.length > maxLabels)
    throw new ModelRefused(`output.labels must list 1 to ${maxLabels} labels, one for each number of the output.`)
  const found = value.map((label, i) => readChoice(label, `output.labels[${i}]`, labels))
  if (found.every((label) => label === 'clean'))
    throw new ModelRefused('output.labels calls everything clean: at least one label must be sexy or pornography.')
  return found
}

function readObject(value: unknown, what: string, known: string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ModelRefused(`${what} must be an object.`)
  const unknown = Object.keys(value).find((key) => !known.includes(key))
  if (unknown !== undefined)
    throw new ModelRefused(
      `${what} has ${JSON.stringify(unknown.slice(0, 40))}, which is not known. Known are ${known.join(', ')}.`,
    )
  return value as Fields
}

function readText(fields: Fields, key: string, form: RegExp, says: string): string {
  const value = fields[key]
  if (typeof value !== 'string' || !form.test(value)) throw new ModelRefused(`${key} must be ${says}.`)
  return value
}

type Range = { least: number; most: number }

function readNumber(value: unknown, what: string, { least, most }: Range): number {
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw new ModelRefused(`${what} must be a number from ${least} to ${most}.`)
  return value
}

function readChannels(value: unknown, what: string, range: Range): number[] {
  if (!Array.isArray(value) || value.length !== 3)
    throw new ModelRefused(`${what} must list three numbers, for red, green and blue.`)
  return value.map((each) => readNumber(each, what, range))
}

function readChoice<T extends string>(value: unknown, what: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value)
  if (found === undefined) throw new ModelRefused(`${what} must be one of ${choices.join(', ')}.`)
  return found
}
