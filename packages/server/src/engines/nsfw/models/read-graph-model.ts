import type { Bundle } from './bundle.ts'
import { type Convolution, type Layer, type Network, picture, toValues } from './network.ts'

type Attribute = { s?: string; list?: { i?: string[]; s?: string[] } }
type GraphNode = { name: string; op: string; input?: string[]; attr: Record<string, Attribute> }

const activations: Record<string, Convolution['activation']> = { Relu6: 'relu6', Relu: 'relu' }

/** MobileNetV2Mid: a frozen graph of TensorFlow, whose batch normalisation is folded already. */
export function readGraphModel(bundle: Bundle, size: number): Network {
  const { node: nodes } = bundle.topology as { node: GraphNode[] }
  // Names that stand for another layer's output.
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
      // Twice the picture less one: from 0 to 1 to -1 to 1.
      case 'Mul':
      case 'Sub': {
        const scalar = node.op === 'Mul' ? first : second
        scalars[node.op] = toValues(bundle.get(scalar))[0] ?? Number.NaN
        aliases.set(node.name, toLayer(node.op === 'Mul' ? second : first))
        if (toLayer(node.name) !== picture) throw new Error(`${node.name} is not about the picture`)
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
        // Of the whole 7 by 7 that are left.
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
        throw new Error(`No layer is known for ${node.op}`)
    }
  }
  return { size, pixelScale: scalars.Mul / 255, pixelOffset: -scalars.Sub, layers }
}

function toActivation({ name, attr }: GraphNode): Convolution['activation'] {
  const [bias, activation] = (attr.fused_ops?.list?.s ?? []).map(toText)
  if (bias !== 'BiasAdd') throw new Error(`${name} has no bias`)
  if (activation === undefined) return 'none'
  const known = activations[activation]
  if (known === undefined) throw new Error(`${activation} is not known`)
  return known
}

const toText = (base64 = '') => Buffer.from(base64, 'base64').toString()

const toShortName = (name: string) => name.replace(/^.*\/(MobilenetV2|predict|sequential)\//, '')
