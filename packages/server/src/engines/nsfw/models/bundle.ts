import { readFile } from 'node:fs/promises'
import type { Weights } from './network.ts'

export type Bundle = {
  /** Of `model.min.js`: what the layers are and how they hang together. */
  topology: unknown
  find(name: string): Weights | undefined
  get(name: string): Weights
}

type Spec = { name: string; shape: number[]; quantization: { min: number; scale: number; dtype: string } }
type ModelJson = { modelTopology: unknown; weightsManifest: { paths: string[]; weights: Spec[] }[] }

/** Reads a model of nsfwjs from its files, `toPath` of their names. They are scripts, and none of them is run. */
export async function readBundle(toPath: (file: string) => string): Promise<Bundle> {
  const model = toJson(await readLiteral(toPath('model.min.js'))) as ModelJson
  const weights = new Map<string, Weights>()
  for (const group of model.weightsManifest) {
    const shards = await Promise.all(group.paths.map((path) => readLiteral(toPath(`${path}.min.js`))))
    const bytes = Buffer.concat(shards.map((shard) => Buffer.from(JSON.parse(shard), 'base64')))
    let at = 0
    for (const { name, shape, quantization } of group.weights) {
      if (quantization?.dtype !== 'uint8') throw new Error(`The weights ${name} are not kept as bytes`)
      const end = at + shape.reduce((product, side) => product * side, 1)
      if (end > bytes.length) throw new Error(`The weights ${name} are cut off`)
      weights.set(name, { shape, bytes: bytes.subarray(at, end), scale: quantization.scale, min: quantization.min })
      at = end
    }
  }
  const find = (name: string) => weights.get(name)
  return {
    topology: model.modelTopology,
    find,
    get(name) {
      const found = find(name)
      if (found === undefined) throw new Error(`There are no weights ${name}`)
      return found
    },
  }
}

/** The one value that the script exports: an object, or a string in its quotes. */
async function readLiteral(path: string): Promise<string> {
  const script = await readFile(path, 'latin1')
  const start = /\.exports=(?=[{"])/.exec(script)
  const end = script.lastIndexOf('},{}]},{},[1])(1)});')
  if (start === null || end === -1) throw new Error(`${path} is not what nsfwjs 4.4 ships`)
  return script.slice(start.index + start[0].length, end)
}

/** Minified JavaScript leaves out quotes of keys and zeroes before the point, and writes true as !0. */
function toJson(literal: string): unknown {
  const tokens = /"(?:[^"\\]|\\.)*"|([A-Za-z_$][\w$]*)(?=:)|!0|!1|-?\d*\.\d+/g
  return JSON.parse(
    literal.replace(tokens, (token, key?: string) => {
      if (key !== undefined) return `"${key}"`
      if (token === '!0') return 'true'
      if (token === '!1') return 'false'
      return token.replace(/^(-?)\./, '$10.')
    }),
  )
}
