import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

export const modelNames = ['mobilenet-v2-mid', 'inception-v3'] as const
export const encodings = ['int8', 'uint8', 'fp32'] as const

export type ModelName = (typeof modelNames)[number]
export type Precision = 'int8' | 'fp32'

/** What the weights of a file are kept as. `int8` and `uint8` give the same scores, each where it is right to use. */
export type Encoding = (typeof encodings)[number]

/** A file that `convert` writes. The service uses no other bytes under this name. */
export type ModelFile = {
  name: ModelName
  encoding: Encoding
  file: string
  bytes: number
  sha256: string
  /** Of the square of pixels that the model takes. */
  size: number
}

export type Manifest = {
  licence: string
  /** The package that the weights come from, and the files of it that each model is made of. */
  source: { package: string; version: string; homepage: string }
  models: (ModelFile & { sources: { file: string; sha256: string }[] })[]
}

/** What is committed: manifest and ranges. */
export const modelsDir = join(import.meta.dirname, '../../../../models')

/** Where models lie that were built here. */
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
