import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

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
