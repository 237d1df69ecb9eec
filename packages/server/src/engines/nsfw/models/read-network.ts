import { readFile } from 'node:fs/promises'
import { type Convolution, type Layer, type Network, type Padding, picture, toValues, type Weights } from './model.ts'

type Bundle = {
  /** The layers and their connections, from `model.min.js`. */
  topology: unknown
  find(name: string): Weights | undefined
  get(name: string): Weights
}

type Spec = { name: string; shape: number[]; quantization: { min: number; scale: number; dtype: string } }
type ModelJson = { modelTopology: unknown; weightsManifest: { paths: string[]; weights: Spec[] }[] }

/** Reads a model of nsfwjs from its files. They are scripts; they are parsed, and never run. */
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

/** The text of the one value that the script exports: an object or a string. */
async function readLiteral(path: string): Promise<string> {
  const script = await readFile(path, 'latin1')
  const start = /\.exports=(?=[{"])/.exec(script)
  const end = script.lastIndexOf('},{}]},{},[1])(1)});')
  if (start === null || end === -1) throw new Error(`${path} is not what nsfwjs 4.4 ships`)
  return script.slice(start.index + start[0].length, end)
}

/** Minified JavaScript leaves out the quotes of keys and the zero before a decimal point, and writes true as !0. */
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

type GraphAttribute = { s?: string; list?: { i?: string[]; s?: string[] } }
type GraphNode = { name: string; op: string; input?: string[]; attr: Record<string, GraphAttribute> }

const activations: Record<string, Convolution['activation']> = { Relu6: 'relu6', Relu: 'relu' }

/** Reads MobileNetV2Mid: a frozen graph of TensorFlow, whose batch normalization is already folded. */
export function readGraphModel(bundle: Bundle, size: number): Network {
  const { node: nodes } = bundle.topology as { node: GraphNode[] }
  // Names of nodes that pass on another layer's output.
  const aliases = new Map<string, string>()
  const layers: Layer[] = []
  const toLayer = (name: string) => aliases.get(name) ?? toShortName(name)
  const scalars = { Mul: 1, Sub: 0 }

  for (const node of nodes) {
    const [first = '', second = '', third = ''] = node.input ?? []
    const name = toShortName(node.name)
    switch (node.op) {
      case 'Const':
        break
      case 'Placeholder':
        aliases.set(node.name, picture)
        break
      // Scales the picture from the range 0 to 1 to the range -1 to 1.
      case 'Mul':
      case 'Sub': {
        const scalar = node.op === 'Mul' ? first : second
        scalars[node.op] = toValues(bundle.get(scalar))[0] ?? Number.NaN
        aliases.set(node.name, toLayer(node.op === 'Mul' ? second : first))
        if (toLayer(node.name) !== picture) throw new Error(`${node.name} does not scale the picture`)
        break
      }
      case '_FusedConv2D':
      case 'FusedDepthwiseConv2dNative':
        layers.push({
          kind: 'conv',
          name,
          input: toLayer(first),
          kernel: bundle.get(second),
          isDepthwise: node.op !== '_FusedConv2D',
          factors: toValues(bundle.get(third)).fill(1),
          bias: toValues(bundle.get(third)),
          stride: Number(node.attr.strides?.list?.i?.[1]),
          padding: toText(node.attr.padding?.s) === 'SAME' ? 'same' : 'valid',
          activation: toActivation(node),
        })
        break
      case 'AddV2':
        layers.push({ kind: 'add', name, inputs: [toLayer(first), toLayer(second)] })
        break
      case 'AvgPool':
        // Averages the whole remaining 7 by 7 area.
        layers.push({ kind: 'mean', name, input: toLayer(first) })
        break
      case '_FusedMatMul':
        layers.push({
          kind: 'dense',
          name,
          input: toLayer(first),
          kernel: bundle.get(second),
          bias: toValues(bundle.get(third)),
          activation: 'none',
        })
        break
      case 'Squeeze':
      case 'Softmax':
      case 'Identity':
        aliases.set(node.name, toLayer(first))
        break
      default:
        throw new Error(`No layer is supported for ${node.op}`)
    }
  }
  return { size, pixelScale: scalars.Mul / 255, pixelOffset: -scalars.Sub, layers }
}

function toActivation({ name, attr }: GraphNode): Convolution['activation'] {
  const [bias, activation] = (attr.fused_ops?.list?.s ?? []).map(toText)
  if (bias !== 'BiasAdd') throw new Error(`${name} has no bias`)
  if (activation === undefined) return 'none'
  const supported = activations[activation]
  if (supported === undefined) throw new Error(`${activation} is not supported`)
  return supported
}

const toText = (base64 = '') => Buffer.from(base64, 'base64').toString()

const toShortName = (name: string) => name.replace(/^.*\/(MobilenetV2|predict|sequential)\//, '')

type KerasLayer = {
  name: string
  class_name: string
  config: {
    padding?: Padding
    strides?: number[]
    pool_size?: number[]
    activation?: string
    epsilon?: number
    use_bias?: boolean
  }
  inbound_nodes: [string][][]
}

/**
 * Reads InceptionV3: layers of Keras. Batch normalization and activation are folded into the convolution before them.
 */
export function readLayersModel(bundle: Bundle, size: number): Network {
  const { layers: kerasLayers } = (bundle.topology as { model_config: { config: { layers: KerasLayer[] } } })
    .model_config.config
  // Names of layers that pass on another layer's output.
  const aliases = new Map<string, string>()
  const layers: Layer[] = []
  const toLayer = (name: string) => aliases.get(name) ?? name
  const getConvolution = (name: string) => {
    const found = layers.find((layer) => layer.name === name)
    if (found?.kind !== 'conv') throw new Error(`${name} is no convolution`)
    return found
  }

  for (const { name, class_name: kind, config, inbound_nodes: inbound } of kerasLayers) {
    const inputs = (inbound[0] ?? []).map(([input]) => toLayer(input))
    const [input = ''] = inputs
    const { padding = 'valid' } = config
    switch (kind) {
      case 'InputLayer':
        aliases.set(name, picture)
        break
      case 'Conv2D': {
        if (config.use_bias || config.activation !== 'linear') throw new Error(`${name} is more than a convolution`)
        const kernel = bundle.get(`${name}/kernel`)
        const channels = kernel.shape[3] ?? 0
        const factors = new Float64Array(channels).fill(1)
        const bias = new Float64Array(channels)
        layers.push({
          kind: 'conv',
          name,
          input,
          kernel,
          isDepthwise: false,
          factors,
          bias,
          stride: getSquareSide(config.strides),
          padding,
          activation: 'none',
        })
        break
      }
      case 'BatchNormalization': {
        const { factors, bias, activation } = getConvolution(input)
        if (activation !== 'none' || bundle.find(`${name}/gamma`)) throw new Error(`${name} cannot be folded`)
        const mean = toValues(bundle.get(`${name}/moving_mean`))
        const variance = toValues(bundle.get(`${name}/moving_variance`))
        for (const [channel, beta] of toValues(bundle.get(`${name}/beta`)).entries()) {
          factors[channel] = 1 / Math.sqrt((variance[channel] as number) + (config.epsilon as number))
          bias[channel] = beta - (mean[channel] as number) * (factors[channel] as number)
        }
        aliases.set(name, input)
        break
      }
      case 'Activation':
        if (config.activation !== 'relu') throw new Error(`${config.activation} is not supported`)
        getConvolution(input).activation = 'relu'
        aliases.set(name, input)
        break
      case 'MaxPooling2D':
      case 'AveragePooling2D': {
        const side = getSquareSide(config.pool_size)
        const stride = getSquareSide(config.strides)
        // The last pool averages the whole remaining 8 by 8 area.
        if (side === 8) layers.push({ kind: 'mean', name, input })
        else
          layers.push({ kind: kind === 'MaxPooling2D' ? 'maxPool' : 'averagePool', name, input, side, stride, padding })
        break
      }
      case 'Concatenate':
        layers.push({ kind: 'concat', name, inputs })
        break
      case 'Dense':
        layers.push({
          kind: 'dense',
          name,
          input,
          kernel: bundle.get(`${name}/kernel`),
          bias: toValues(bundle.get(`${name}/bias`)),
          activation: config.activation === 'relu' ? 'relu' : 'none',
        })
        break
      case 'Flatten':
      case 'Dropout':
        aliases.set(name, input)
        break
      default:
        throw new Error(`No layer is supported for ${kind}`)
    }
  }
  return { size, pixelScale: 1 / 255, pixelOffset: 0, layers }
}

function getSquareSide([height, width]: number[] = []): number {
  if (height === undefined || height !== width) throw new Error('The height and the width of a kernel differ')
  return height
}
