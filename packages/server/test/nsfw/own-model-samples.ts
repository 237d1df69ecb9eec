import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Graph, type Node, type Tensor, toOnnx } from '../../src/engines/nsfw/models/onnx.ts'

/** The fields of a manifest, with values that tests replace to break it. */
export type Fields = Record<string, unknown>

/** A vision transformer's side: small, so that a test opens it in a moment. */
export const side = 32

export const vitManifest = {
  name: 'tiny-vit',
  version: '1',
  licence: 'Apache-2.0',
  file: 'model.onnx',
  input: {
    size: side,
    resize: 'cubic',
    type: 'float32',
    layout: 'NCHW',
    mean: [0.5, 0.5, 0.5],
    deviation: [0.5, 0.5, 0.5],
  },
  output: { activation: 'softmax', labels: ['clean', 'pornography'] },
  threshold: 0.7,
}

/** Writes a model with its manifest to a new directory and returns the path. */
export function writeModel(dir: string, onnx: Buffer, fields: Fields = {}): string {
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'model.onnx'), onnx)
  const sha256 = createHash('sha256').update(onnx).digest('hex')
  writeFileSync(join(dir, 'manifest.json'), JSON.stringify({ ...vitManifest, sha256, ...fields }))
  return dir
}

const patch = 8
const width = 16
const heads = 2
const blocks = 2
const tokens = (side / patch) ** 2

/**
 * A vision transformer: patches, positions, blocks of multi-head attention and GELU with layer norms, and a linear head.
 * The weights are noise, but the first channel of every token is how red the patch is, and the head reads that. So red
 * pictures score high and green ones low. `seed` gives other weights.
 */
export function makeVit(seed = 1): Buffer {
  const next = makeNoise(seed)
  const tensors: Tensor[] = []
  const nodes: Node[] = []
  const addTensor = (name: string, shape: number[], toValue: (i: number) => number = () => 0.05 * next()) => {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => toValue(i))
    tensors.push({ name, shape, values })
    return name
  }
  const add = (op: string, inputs: string[], output: string, attributes: NonNullable<Node['attributes']> = {}) => {
    nodes.push({ op, inputs, outputs: [output], attributes })
    return output
  }
  const addLinear = (input: string, name: string, from: number, to: number) => {
    const product = add('MatMul', [input, addTensor(`${name}.weight`, [from, to])], `${name}.product`)
    return add('Add', [product, addTensor(`${name}.bias`, [to])], name)
  }
  const addNorm = (input: string, name: string) => {
    const weights = [addTensor(`${name}.scale`, [width], () => 1), addTensor(`${name}.bias`, [width], () => 0)]
    return add('LayerNormalization', [input, ...weights], name, { axis: -1, epsilon: { float: 1e-5 } })
  }
  const addAttention = (input: string, name: string) => {
    const parts = ['query', 'key', 'value'].map((part) => {
      const whole = addLinear(input, `${name}.${part}`, width, width)
      const outputs = Array.from({ length: heads }, (_, head) => `${whole}.${head}`)
      nodes.push({ op: 'Split', inputs: [whole], outputs, attributes: { axis: 1 } })
      return outputs
    })
    const joined = Array.from({ length: heads }, (_, head) => {
      const [query = '', key = '', value = ''] = parts.map((part) => part[head])
      const turned = add('Transpose', [key], `${key}.turned`, { perm: [1, 0] })
      const scores = add('MatMul', [query, turned], `${name}.${head}.scores`)
      const scaled = add('Mul', [scores, 'attention.scale'], `${name}.${head}.scaled`)
      return add(
        'MatMul',
        [add('Softmax', [scaled], `${name}.${head}.weights`, { axis: -1 }), value],
        `${name}.${head}`,
      )
    })
    return addLinear(add('Concat', joined, `${name}.joined`, { axis: 1 }), `${name}.out`, width, width)
  }
  const addGelu = (input: string, name: string) => {
    const erf = add('Erf', [add('Div', [input, 'root of 2'], `${name}.over`)], `${name}.erf`)
    const half = add('Mul', [input, 'half'], `${name}.half`)
    return add('Mul', [half, add('Add', [erf, 'one'], `${name}.more`)], name)
  }

  addTensor('attention.scale', [1], () => 1 / Math.sqrt(width / heads))
  addTensor('root of 2', [1], () => Math.SQRT2)
  addTensor('half', [1], () => 0.5)
  addTensor('one', [1], () => 1)
  const area = patch * patch
  const kernel = addTensor('patches.weight', [width, 3, patch, patch], (i) => {
    const [channel, colour] = [Math.floor(i / (3 * area)), Math.floor(i / area) % 3]
    return channel === 0 ? (colour === 0 ? 2 : -1) / area : (0.3 * next()) / area
  })
  add('Conv', ['pixels', kernel], 'patches', { kernel_shape: [patch, patch], strides: [patch, patch] })
  add('Flatten', ['patches'], 'flat', { axis: 2 })
  add('Transpose', ['flat'], 'tokens', { perm: [1, 0] })
  let stream = add('Add', ['tokens', addTensor('positions', [tokens, width])], 'positioned')
  for (let i = 0; i < blocks; i++) {
    const attention = addAttention(addNorm(stream, `${i}.norm1`), `${i}.attention`)
    stream = add('Add', [stream, attention], `${i}.attended`)
    const wide = addGelu(addLinear(addNorm(stream, `${i}.norm2`), `${i}.wide`, width, width * 4), `${i}.gelu`)
    stream = add('Add', [stream, addLinear(wide, `${i}.narrow`, width * 4, width)], `${i}.out`)
  }
  add('ReduceMean', [addNorm(stream, 'norm')], 'mean', { axes: [0], keepdims: 1 })
  const head = addTensor('head.weight', [width, 2], (i) => (i < 2 ? (i === 1 ? 2 : -2) : 0.01 * next()))
  add('MatMul', ['mean', head], 'logits')
  return toModel({ nodes, tensors })
}

/** A model whose output is the mean of each channel as it arrives, plus 1 for bytes, because no output may be all 0. */
export function makeProbe({ type, layout }: { type: 'float32' | 'uint8'; layout: 'NHWC' | 'NCHW' }): Buffer {
  const axes = layout === 'NCHW' ? [2, 3] : [1, 2]
  const nodes: Node[] = [
    { op: 'Cast', inputs: ['pixels'], outputs: ['floats'], attributes: { to: 1 } },
    { op: 'ReduceMean', inputs: ['floats'], outputs: ['means'], attributes: { axes, keepdims: 0 } },
    { op: 'Add', inputs: ['means', 'added'], outputs: ['logits'] },
  ]
  const added = Float32Array.of(type === 'uint8' ? 1 : 0)
  const shape = layout === 'NCHW' ? [1, 3, side, side] : [1, side, side, 3]
  return toOnnx({
    name: 'probe',
    inputs: [{ name: 'pixels', type: type === 'uint8' ? 'uint8' : 'float', shape }],
    outputs: [{ name: 'logits', type: 'float', shape: [1, 3] }],
    nodes,
    tensors: [{ name: 'added', shape: [1], values: added }],
  })
}

/** A graph from `pixels`, which are 1 x 3 x 32 x 32 floats, to `logits`. */
export const toModel = ({
  nodes,
  tensors,
  inputs,
  outputs,
}: Pick<Graph, 'nodes' | 'tensors'> & Partial<Graph>): Buffer =>
  toOnnx({
    name: 'sample',
    inputs: inputs ?? [{ name: 'pixels', type: 'float', shape: [1, 3, side, side] }],
    outputs: outputs ?? [{ name: 'logits', type: 'float', shape: [1, 2] }],
    nodes,
    tensors,
  })

/** Numbers from -1 to 1, the same for the same seed. */
export function makeNoise(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 31 - 1
  }
}
