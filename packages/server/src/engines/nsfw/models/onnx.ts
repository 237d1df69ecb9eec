import { endianness } from 'node:os'

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

/** The last version in which ReduceMean takes its axes as an attribute. */
const operatorSet = 17
const irVersion = 8
const dataTypes = { float: 1, uint8: 2, int8: 3, int32: 6 }
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
