import { endianness } from 'node:os'
import {
  type Convolution,
  classes,
  type Dense,
  type Layer,
  type Network,
  picture,
  toKernelOrder,
  toValues,
} from './model.ts'

const dataTypes = { float: 1, uint8: 2, int8: 3, int32: 6 }

type Values = Float32Array | Uint8Array | Int8Array | Int32Array

export type Tensor = { name: string; shape: number[]; values: Values }

type Attribute = number | number[] | string | { float: number }

export type Node = {
  op: string
  inputs: string[]
  outputs: string[]
  attributes?: Record<string, Attribute>
  /** An operator of onnxruntime, not of ONNX. */
  isContributed?: boolean
}

export type Port = { name: string; type: keyof typeof dataTypes; shape: number[] }

export type Graph = { name: string; inputs: Port[]; outputs: Port[]; nodes: Node[]; tensors: Tensor[] }

/** The nodes and tensors that one layer adds to a graph. */
export type Added = { nodes: Node[]; tensors: Tensor[] }

/** TensorFlow puts the odd row and column of padding last. */
export const autoPads = { same: 'SAME_UPPER', valid: 'VALID' }

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

/** The last version in which ReduceMean takes its axes as an attribute. */
const operatorSet = 17
const irVersion = 8
const attributeTypes = { float: 1, int: 2, string: 3, ints: 7 }

/** The bytes of an ONNX file, the same for the same graph. https://onnx.ai/onnx/repo-docs/IR.html, onnx.proto */
export function toOnnx({ name, inputs, outputs, nodes, tensors }: Graph): Buffer {
  if (endianness() !== 'LE') throw new Error('ONNX holds numbers in little-endian order, and this machine does not')
  const graph: Message = [
    ...nodes.flatMap((node) => newMessage(1, newNode(node))),
    newText(2, name),
    ...tensors.flatMap((tensor) => newMessage(5, newTensor(tensor))),
    ...inputs.flatMap((port) => newMessage(11, newPort(port))),
    ...outputs.flatMap((port) => newMessage(12, newPort(port))),
  ]
  return Buffer.concat([
    newInt(1, irVersion),
    newText(2, 'assay'),
    ...newMessage(7, graph),
    ...newMessage(8, [newText(1, ''), newInt(2, operatorSet)]),
    ...newMessage(8, [newText(1, 'com.microsoft'), newInt(2, 1)]),
  ])
}

function newNode({ op, inputs, outputs, attributes = {}, isContributed }: Node): Message {
  return [
    ...inputs.map((input) => newText(1, input)),
    ...outputs.map((output) => newText(2, output)),
    newText(3, outputs[0] ?? op),
    newText(4, op),
    ...Object.entries(attributes).flatMap(([name, value]) => newMessage(5, newAttribute(name, value))),
    ...(isContributed ? [newText(7, 'com.microsoft')] : []),
  ]
}

function newAttribute(name: string, value: Attribute): Message {
  const named = (type: keyof typeof attributeTypes, ...fields: Buffer[]) => [
    newText(1, name),
    ...fields,
    newInt(20, attributeTypes[type]),
  ]
  if (typeof value === 'number') return named('int', newInt(3, value))
  if (typeof value === 'string') return named('string', newText(4, value))
  if (Array.isArray(value)) return named('ints', ...value.map((each) => newInt(8, each)))
  return named('float', newFloat(2, value.float))
}

function newTensor({ name, shape, values }: Tensor): Message {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  return [
    ...shape.map((side) => newInt(1, side)),
    newInt(2, dataTypes[toType(values)]),
    newText(8, name),
    ...newBytes(9, bytes),
  ]
}

function newPort({ name, type, shape }: Port): Message {
  const sides = shape.flatMap((side) => newMessage(1, [newInt(1, side)]))
  const tensorType = [newInt(1, dataTypes[type]), ...newMessage(2, sides)]
  return [newText(1, name), ...newMessage(2, newMessage(1, tensorType))]
}

function toType(values: Values): keyof typeof dataTypes {
  if (values instanceof Float32Array) return 'float'
  if (values instanceof Int32Array) return 'int32'
  return values instanceof Int8Array ? 'int8' : 'uint8'
}

/** A protobuf message: its encoded fields in order. */
type Message = Buffer[]

/** Encodes an integer; a negative one takes ten bytes. */
function newInt(field: number, value: number | bigint): Buffer {
  return Buffer.concat([newVarint(field << 3), newVarint(BigInt.asUintN(64, BigInt(value)))])
}

function newFloat(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return Buffer.concat([newVarint((field << 3) | 5), bytes])
}

function newBytes(field: number, value: Uint8Array): Buffer[] {
  return [
    newVarint((field << 3) | 2),
    newVarint(value.length),
    Buffer.from(value.buffer, value.byteOffset, value.length),
  ]
}

const newText = (field: number, value: string): Buffer => Buffer.concat(newBytes(field, Buffer.from(value)))

function newMessage(field: number, message: Message): Buffer[] {
  const length = message.reduce((sum, { length }) => sum + length, 0)
  return [newVarint((field << 3) | 2), newVarint(length), ...message]
}

function newVarint(value: number | bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt(value)
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128)
    rest >>= 7n
  }
  return Buffer.from([...bytes, Number(rest)])
}
