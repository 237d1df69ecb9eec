import { type Dense, toValues } from './network.ts'
import type { Node, Tensor } from './onnx.ts'

export type Added = { nodes: Node[]; tensors: Tensor[] }

/** In floats for every precision: it is a thousandth of the work, and onnxruntime makes something slower of quantised ones. */
export function toDense({ name, input, kernel, bias, activation }: Dense): Added {
  const linear = activation === 'none' ? name : `${name}:linear`
  const nodes: Node[] = [{ op: 'Gemm', inputs: [input, `${name}:kernel`, `${name}:bias`], outputs: [linear] }]
  if (activation === 'relu') nodes.push({ op: 'Relu', inputs: [linear], outputs: [name] })
  return {
    nodes,
    tensors: [
      { name: `${name}:kernel`, shape: kernel.shape, values: Float32Array.from(toValues(kernel)) },
      { name: `${name}:bias`, shape: [bias.length], values: Float32Array.from(bias) },
    ],
  }
}
