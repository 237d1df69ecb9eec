import {
  type Convolution,
  classes,
  getZeroPoint,
  type Layer,
  type Network,
  type Pool,
  picture,
  toKernelOrder,
} from './model.ts'
import { type Added, autoPads, type Graph, type Node, type Port, type Tensor, toDense, toOnnx } from './onnx.ts'

type KernelForm = {
  /** Each byte of a kernel is stored less 128, which gives the same result. */
  isSigned: boolean
  /** Kernels are changed by `centreKernel`; otherwise their bytes are those that nsfwjs ships. */
  isCentred: boolean
}

/**
 * Converts the network to bytes: the weights are those that nsfwjs ships, and the output of a layer is rounded to 256
 * steps over its range. Channels stay last, so that the picture needs no transposition.
 */
export function toInt8Onnx(network: Network, ranges: Ranges, { isSigned, isCentred }: KernelForm): Buffer {
  const { size, layers } = network
  const steps = chooseSteps(network, ranges)
  const getStep = (name: string) => {
    const step = steps.get(name)
    if (step === undefined) throw new Error(`${name} has no range`)
    return step
  }
  const nodes: Node[] = [{ op: 'Identity', inputs: ['pixels'], outputs: [picture] }]
  const tensors: Tensor[] = [...steps].flatMap(([name, { scale, zero }]) => newStepTensors(name, scale, zero))
  for (const layer of layers) {
    const added = toNodes(layer, { network, getStep, isCentred })
    nodes.push(...added.nodes)
    tensors.push(...added.tensors)
  }
  const last = layers.at(-1)?.name ?? picture
  nodes.push({ op: 'Softmax', inputs: [last], outputs: ['scores'], attributes: { axis: 1 } })
  const inputs: Port[] = [{ name: 'pixels', type: 'uint8', shape: [1, size, size, 3] }]
  const outputs: Port[] = [{ name: 'scores', type: 'float', shape: [1, classes.length] }]
  const graph = dropUnused({ name: 'nsfw', inputs, outputs, nodes, tensors })
  return toOnnx(isSigned ? { ...graph, tensors: graph.tensors.map(toSigned) } : graph)
}

const kernelTensor = /:kernel( zero)?$/

function toSigned(tensor: Tensor): Tensor {
  const { name, values } = tensor
  if (!kernelTensor.test(name) || !(values instanceof Uint8Array)) return tensor
  const signed = new Int8Array(values.length)
  for (let i = 0; i < values.length; i++) signed[i] = (values[i] as number) - 128
  return { ...tensor, values: signed }
}

/** Drops concatenations whose parts are used instead, and steps without a user: onnxruntime would warn of them. */
function dropUnused(graph: Graph): Graph {
  const used = new Set(graph.outputs.map(({ name }) => name))
  const nodes = graph.nodes.toReversed().filter(({ inputs, outputs }) => {
    if (!outputs.some((output) => used.has(output))) return false
    for (const input of inputs) used.add(input)
    return true
  })
  return { ...graph, nodes: nodes.reverse(), tensors: graph.tensors.filter(({ name }) => used.has(name)) }
}

type Conversion = { network: Network; getStep: (name: string) => Step; isCentred: boolean }

function toNodes(layer: Layer, conversion: Conversion): Added {
  const { name } = layer
  const { network, getStep } = conversion
  switch (layer.kind) {
    case 'conv':
      return toConvolution(layer, conversion)
    case 'dense':
      return toDense(layer)
    case 'add': {
      const inputs = [...layer.inputs.flatMap((input) => [input, ...toStepNames(input)]), ...toStepNames(name)]
      return { nodes: [{ op: 'QLinearAdd', inputs, outputs: [name], isContributed: true }], tensors: [] }
    }
    case 'concat': {
      const attributes = { axis: 3 }
      const isSame = layer.inputs.every((input) => getStep(input).scale === getStep(name).scale)
      if (isSame) return { nodes: [{ op: 'Concat', inputs: layer.inputs, outputs: [name], attributes }], tensors: [] }
      const inputs = [...toStepNames(name), ...layer.inputs.flatMap((input) => [input, ...toStepNames(input)])]
      return { nodes: [{ op: 'QLinearConcat', inputs, outputs: [name], attributes, isContributed: true }], tensors: [] }
    }
    case 'mean': {
      // The rest is computed in floats: there is little of it, and nothing more is rounded.
      const parts = listParts(layer.input, new Map(network.layers.map((each) => [each.name, each])))
      const nodes = parts.flatMap((part): Node[] => [
        { op: 'DequantizeLinear', inputs: [part, ...toStepNames(part)], outputs: [`${part}:floats`] },
        {
          op: 'ReduceMean',
          inputs: [`${part}:floats`],
          outputs: [`${part}:means`],
          attributes: { axes: [1, 2], keepdims: 0 },
        },
      ])
      const inputs = parts.map((part) => `${part}:means`)
      return { nodes: [...nodes, { op: 'Concat', inputs, outputs: [name], attributes: { axis: 1 } }], tensors: [] }
    }
    case 'maxPool':
    case 'averagePool':
      return { nodes: [toPool(layer)], tensors: [] }
  }
}

function toConvolution(layer: Convolution, { network, getStep, isCentred }: Conversion): Added {
  const { name, input, kernel, isDepthwise, factors, stride, padding } = layer
  const { shape, values: bytes } = toKernelOrder(layer, kernel.bytes, new Uint8Array(kernel.bytes.length))
  const [channels = 0, , height = 0, width = 0] = shape
  const shipped = { values: bytes, zero: getZeroPoint(kernel), scales: factors.map((factor) => factor * kernel.scale) }
  const { values, zero, scales } = isCentred ? centreKernel(shipped) : shipped
  const { scale, zero: inputZero } = getStep(input)
  // The picture's zero may lie between two bytes. The resulting shift is the same everywhere but at the rim.
  const shift = input === picture ? network.pixelOffset + inputZero * scale : 0
  const perChannel = values.length / channels
  const bias = layer.bias.map((value, channel) => {
    let sum = -zero * perChannel
    for (let i = channel * perChannel; i < (channel + 1) * perChannel; i++) sum += values[i] as number
    return Math.round(value / (scale * (scales[channel] as number)) + (shift / scale) * sum)
  })
  if (bias.some((value) => Math.abs(value) >= 2 ** 31)) throw new Error(`A bias of ${name} is too great for 32 bits`)
  const attributes = {
    kernel_shape: [height, width],
    strides: [stride, stride],
    group: isDepthwise ? channels : 1,
    auto_pad: autoPads[padding],
    channels_last: 1,
  }
  const weights = [`${name}:kernel`, `${name}:kernel scale`, `${name}:kernel zero`]
  const inputs = [input, ...toStepNames(input), ...weights, ...toStepNames(name), `${name}:bias`]
  return {
    // Values outside of the range are cut off, which also replaces the activation.
    nodes: [{ op: 'QLinearConv', inputs, outputs: [name], attributes, isContributed: true }],
    tensors: [
      { name: `${name}:kernel`, shape, values },
      { name: `${name}:kernel scale`, shape: [channels], values: Float32Array.from(scales) },
      { name: `${name}:kernel zero`, shape: [channels], values: new Uint8Array(channels).fill(zero) },
      { name: `${name}:bias`, shape: [channels], values: Int32Array.from(bias) },
    ],
  }
}

function toPool({ kind, name, input, side, stride, padding }: Pool): Node {
  const attributes = { kernel_shape: [side, side], strides: [stride, stride], auto_pad: autoPads[padding] }
  if (kind === 'maxPool')
    return { op: 'NhwcMaxPool', inputs: [input], outputs: [name], attributes, isContributed: true }
  return {
    op: 'QLinearAveragePool',
    inputs: [input, ...toStepNames(input), ...toStepNames(name)],
    outputs: [name],
    attributes: { ...attributes, channels_last: 1 },
    isContributed: true,
  }
}

const toStepNames = (name: string) => [`${name}:scale`, `${name}:zero`]

function newStepTensors(name: string, scale: number, zero: number): Tensor[] {
  const [scaleName = '', zeroName = ''] = toStepNames(name)
  return [
    { name: scaleName, shape: [], values: Float32Array.of(scale) },
    { name: zeroName, shape: [], values: Uint8Array.of(zero) },
  ]
}

/** The least and the greatest value that each layer gave for the calibration pictures. */
export type Ranges = Record<string, [least: number, greatest: number]>

/** A byte stands for `(byte - zero) * scale`. */
type Step = { scale: number; zero: number }

/**
 * Chooses the step of each layer up to the means. A pool shares its step with its input, and the inputs of a
 * concatenation share the step of the concatenation, so that they are rounded once. A pool that goes into a
 * concatenation keeps its own step, which may be finer. A concatenation whose means are taken has no step: the means
 * are those of its inputs.
 */
function chooseSteps({ layers, pixelScale, pixelOffset }: Network, ranges: Ranges): Map<string, Step> {
  const end = layers.findIndex(({ kind }) => kind === 'mean')
  const rounded = new Map(layers.slice(0, end).map((layer) => [layer.name, layer]))
  const means = layers[end]
  const feedsMeans = (name: string): boolean => means?.kind === 'mean' && isPartOf(name, means.input, rounded)
  const groups = new Map<string, string[]>([...rounded.keys()].map((name) => [name, [name]]))
  const shareStep = (name: string, other: string) => {
    const [group = [], others = []] = [groups.get(name), groups.get(other)]
    if (group === others) return
    const all = [...group, ...others]
    for (const each of all) groups.set(each, all)
  }
  for (const layer of rounded.values()) {
    if (layer.kind === 'concat' && !feedsMeans(layer.name)) {
      for (const input of layer.inputs) if (rounded.get(input)?.kind !== 'maxPool') shareStep(layer.name, input)
    }
    if (layer.kind === 'maxPool' || layer.kind === 'averagePool') shareStep(layer.name, layer.input)
  }
  const steps = new Map<string, Step>()
  for (const [name, group] of groups) steps.set(name, computeStep(group.map((each) => getRange(ranges, each))))
  steps.set(picture, { scale: pixelScale, zero: Math.round(-pixelOffset / pixelScale) })
  return steps
}

/** The layers that a concatenation joins, also through other concatenations. */
function listParts(name: string, layers: Map<string, Layer>): string[] {
  const layer = layers.get(name)
  return layer?.kind === 'concat' ? layer.inputs.flatMap((input) => listParts(input, layers)) : [name]
}

function isPartOf(name: string, whole: string, layers: Map<string, Layer>): boolean {
  if (name === whole) return true
  const layer = layers.get(whole)
  return layer?.kind === 'concat' && layer.inputs.some((input) => isPartOf(name, input, layers))
}

/** The range always includes zero, which pads a picture and at which activations cut. */
function computeStep(group: [number, number][]): Step {
  const least = Math.min(0, ...group.map(([value]) => value))
  const greatest = Math.max(0, ...group.map(([, value]) => value))
  const scale = Math.fround((greatest - least) / 255)
  return { scale, zero: Math.round(-least / scale) }
}

function getRange(ranges: Ranges, name: Layer['name']): [number, number] {
  const range = ranges[name]
  if (range === undefined) throw new Error(`There is no range for the layer ${name}`)
  return range
}

/** The byte that stands for zero in a centred kernel, and the number of steps to the greatest byte. */
const centredZero = 128
const centredReach = 127

type Kernel = { values: Uint8Array; zero: number; scales: Float64Array }

/**
 * Moves the zero of a kernel to the middle of the bytes, for which onnxruntime has convolutions that take half the
 * time. Nearly every channel keeps its steps. Of MobileNetV2Mid 71 of 23,968 channels reach too far to one side: they
 * are rounded to wider steps, the widest by 57 per cent.
 */
export function centreKernel({ values, zero, scales }: Kernel): Kernel {
  const perChannel = values.length / scales.length
  const centred = new Uint8Array(values.length)
  const widerScales = scales.map((scale, channel) => {
    const [start, end] = [channel * perChannel, (channel + 1) * perChannel]
    let reach = centredReach
    for (let i = start; i < end; i++) reach = Math.max(reach, Math.abs((values[i] as number) - zero))
    const step = reach / centredReach
    for (let i = start; i < end; i++) centred[i] = Math.round(((values[i] as number) - zero) / step) + centredZero
    return scale * step
  })
  return { values: centred, zero: centredZero, scales: widerScales }
}
