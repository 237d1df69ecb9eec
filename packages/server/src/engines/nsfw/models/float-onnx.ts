import {
  type Convolution,
  classes,
  type Dense,
  type Layer,
  type Network,
  picture,
  toKernelOrder,
  toValues,
} from './network.ts'
import { type Node, type Port, type Tensor, toOnnx } from './onnx.ts'

/**
 * The network in 32-bit floats, as TensorFlow.js computes it. With `withRanges` it also gives the least and the
 * greatest value of each layer, as `<name>:min` and `<name>:max`.
 */
export function toFloatOnnx({ size, pixelScale, pixelOffset, layers }: Network, { withRanges = false } = {}): Buffer {
  const outputs: Port[] = [{ name: 'scores', type: 'float', shape: [1, classes.length] }]
  const tensors: Tensor[] = [newScalar('pixel scale', pixelScale), newScalar('pixel offset', pixelOffset)]
  const nodes: Node[] = [
    { op: 'Cast', inputs: ['pixels'], outputs: ['floats'], attributes: { to: 1 } },
    { op: 'Mul', inputs: ['floats', 'pixel scale'], outputs: ['scaled'] },
    { op: 'Add', inputs: ['scaled', 'pixel offset'], outputs: ['shifted'] },
    // TensorFlow orders the channels last, ONNX second.
    { op: 'Transpose', inputs: ['shifted'], outputs: [picture], attributes: { perm: [0, 3, 1, 2] } },
  ]
  for (const layer of layers) {
    const added = toNodes(layer)
    nodes.push(...added.nodes)
    tensors.push(...added.tensors)
  }
  const last = layers.at(-1)?.name ?? picture
  nodes.push({ op: 'Softmax', inputs: [last], outputs: ['scores'], attributes: { axis: 1 } })
  if (withRanges) {
    for (const { name } of layers) {
      for (const [op, end] of [['ReduceMin', 'min'] as const, ['ReduceMax', 'max'] as const]) {
        nodes.push({ op, inputs: [name], outputs: [`${name}:${end}`], attributes: { keepdims: 0 } })
        outputs.push({ name: `${name}:${end}`, type: 'float', shape: [] })
      }
    }
  }
  const inputs: Port[] = [{ name: 'pixels', type: 'uint8', shape: [1, size, size, 3] }]
  return toOnnx({ name: 'nsfw', inputs, outputs, nodes, tensors })
}

function toNodes(layer: Layer): Added {
  const { name } = layer
  switch (layer.kind) {
    case 'conv':
      return toConvolution(layer)
    case 'dense':
      return toDense(layer)
    case 'add':
      return { nodes: [{ op: 'Add', inputs: layer.inputs, outputs: [name] }], tensors: [] }
    case 'concat':
      return { nodes: [{ op: 'Concat', inputs: layer.inputs, outputs: [name], attributes: { axis: 1 } }], tensors: [] }
    case 'mean': {
      const means: Node = { op: 'GlobalAveragePool', inputs: [layer.input], outputs: [`${name}:means`] }
      return { nodes: [means, { op: 'Flatten', inputs: [`${name}:means`], outputs: [name] }], tensors: [] }
    }
    case 'maxPool':
    case 'averagePool': {
      const { input, side, stride, padding } = layer
      const op = layer.kind === 'maxPool' ? 'MaxPool' : 'AveragePool'
      const attributes = { kernel_shape: [side, side], strides: [stride, stride], auto_pad: autoPads[padding] }
      return { nodes: [{ op, inputs: [input], outputs: [name], attributes }], tensors: [] }
    }
  }
}

/** TensorFlow puts the odd row and column of padding last. */
export const autoPads = { same: 'SAME_UPPER', valid: 'VALID' }

function toConvolution(layer: Convolution): Added {
  const { name, input, kernel, isDepthwise, factors, bias, stride, padding, activation } = layer
  const { shape, values } = toKernelOrder(
    layer,
    new Float32Array(toValues(kernel)),
    new Float32Array(kernel.bytes.length),
  )
  const [channels = 0, , height = 0, width = 0] = shape
  const perChannel = values.length / channels
  for (const [channel, factor] of factors.entries()) {
    const end = (channel + 1) * perChannel
    for (let i = channel * perChannel; i < end; i++) values[i] = (values[i] as number) * factor
  }
  const linear = activation === 'none' ? name : `${name}:linear`
  const attributes = {
    kernel_shape: [height, width],
    strides: [stride, stride],
    group: isDepthwise ? channels : 1,
    auto_pad: autoPads[padding],
  }
  const tensors: Tensor[] = [
    { name: `${name}:kernel`, shape, values },
    { name: `${name}:bias`, shape: [channels], values: Float32Array.from(bias) },
  ]
  const nodes: Node[] = [
    { op: 'Conv', inputs: [input, `${name}:kernel`, `${name}:bias`], outputs: [linear], attributes },
  ]
  if (activation === 'relu') nodes.push({ op: 'Relu', inputs: [linear], outputs: [name] })
  if (activation === 'relu6') {
    nodes.push({ op: 'Clip', inputs: [linear, `${name}:least`, `${name}:most`], outputs: [name] })
    tensors.push(newScalar(`${name}:least`, 0), newScalar(`${name}:most`, 6))
  }
  return { nodes, tensors }
}

/** The nodes and tensors that one layer adds to a graph. */
export type Added = { nodes: Node[]; tensors: Tensor[] }

/**
 * A dense layer in floats, for every precision: it is a thousandth of the work, and onnxruntime is slower with a
 * quantized one.
 */
export function toDense({ name, input, kernel, bias, activation }: Dense): Added {
  const linear = activation === 'none' ? name : `${name}:linear`
  const nodes: Node[] = [{ op: 'Gemm', inputs: [input, `${name}:kernel`, `${name}:bias`], outputs: [linear] }]
  if (activation === 'relu') nodes.push({ op: 'Relu', inputs: [linear], outputs: [name] })
  return {
    nodes,
    tensors: [
      { name: `${name}:kernel`, shape: kernel.shape, values: new Float32Array(toValues(kernel)) },
      { name: `${name}:bias`, shape: [bias.length], values: Float32Array.from(bias) },
    ],
  }
}

const newScalar = (name: string, value: number): Tensor => ({ name, shape: [], values: Float32Array.of(value) })
