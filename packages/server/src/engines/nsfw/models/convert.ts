import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Ranges, toInt8Onnx } from './int8-onnx.ts'
import { type Encoding, type ModelName, modelsDir } from './manifest.ts'
import type { Network } from './model.ts'
import { toFloatOnnx } from './onnx.ts'
import { readBundle, readGraphModel, readLayersModel } from './read-network.ts'

/** Centred kernels halve the time of MobileNetV2Mid. InceptionV3 has larger kernels and gains nothing. */
const sources = {
  'mobilenet-v2-mid': { folder: 'mobilenet_v2_mid', size: 224, shards: 2, read: readGraphModel, isCentred: true },
  'inception-v3': { folder: 'inception_v3', size: 299, shards: 6, read: readLayersModel, isCentred: false },
} as const

/**
 * Converts a model to the bytes of an ONNX file, the same on every machine. Blocks the process for seconds.
 * `sourceRoot` is the directory of nsfwjs, which a process in a jail cannot look for.
 */
export async function convert(name: ModelName, encoding: Encoding, sourceRoot?: string): Promise<Buffer> {
  const network = await readNetwork(name, sourceRoot)
  if (encoding === 'fp32') return toFloatOnnx(network)
  const { isCentred } = sources[name]
  return toInt8Onnx(network, await readRanges(name), { isSigned: encoding === 'int8', isCentred })
}

/** Throws when nsfwjs is not installed. */
export function readNetwork(name: ModelName, sourceRoot = findSourceRoot()): Promise<Network> {
  const { read, size } = sources[name]
  const dir = getSourceDir(name, sourceRoot)
  return readBundle((file) => join(dir, file)).then((bundle) => read(bundle, size))
}

export const toRangesPath = (name: ModelName) => join(modelsDir, `activation-ranges-${name}.json`)

export const toInputSize = (name: ModelName): number => sources[name].size

/** Lists the files of nsfwjs that a model is made of. */
export function listSourceFiles(name: ModelName): { file: string; path: string }[] {
  const dir = getSourceDir(name, findSourceRoot())
  const { folder, shards } = sources[name]
  const files = Array.from({ length: shards }, (_, i) => `group1-shard${i + 1}of${shards}.min.js`)
  return ['model.min.js', ...files].map((file) => ({ file: `dist/models/${folder}/${file}`, path: join(dir, file) }))
}

/** The directory of nsfwjs; undefined in an installation without development dependencies. */
export function findSourceRoot(): string | undefined {
  try {
    // The package exports only its entry, which lies in `dist/cjs`.
    return join(dirname(createRequire(import.meta.url).resolve('nsfwjs')), '..', '..')
  } catch {
    return undefined
  }
}

async function readRanges(name: ModelName): Promise<Ranges> {
  return JSON.parse(await readFile(toRangesPath(name), 'utf8'))
}

function getSourceDir(name: ModelName, root: string | undefined): string {
  if (root === undefined) throw new Error('nsfwjs is not installed')
  return join(root, 'dist', 'models', sources[name].folder)
}
