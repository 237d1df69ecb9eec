/** The square that a model takes. The picture is squashed into it by the kernel nearest to the model's training. */
export type Shape = { side: number; kernel: (typeof kernels)[number] }

export const kernels = ['linear', 'cubic', 'lanczos3'] as const

export const smallShape: Shape = { side: 224, kernel: 'linear' }
export const largeShape: Shape = { side: 299, kernel: 'lanczos3' }

export const labels = ['clean', 'sexy', 'pornography'] as const

export type Label = (typeof labels)[number]

/** How pixels are given to a model, and how its output is read. */
export type ModelForm = {
  shape: Shape
  /** Each channel is (value - mean) / deviation, with values from 0 to 1; a model of `uint8` takes the bytes as they are. */
  input: { type: 'uint8' | 'float32'; layout: 'NHWC' | 'NCHW'; mean: number[]; deviation: number[] }
  /** The function that makes probabilities of the output; `none` when the model has it built in. */
  activation: 'softmax' | 'sigmoid' | 'none'
  /** The label of each number of the output. Without `clean`, its score is the rest to 1. */
  labels: Label[]
  /** The sum of sexy and pornography from which on the model means a threat. */
  threshold: number
}

/** A model file with the expected checksum. */
export type Model = { name: string; title: string; path: string; sha256: string; isOwn: boolean; form: ModelForm }

/** The threshold of the shipped models. Scores of others are scaled to it, so that one scale holds for all. */
export const commonThreshold = 0.7

const shipped: Omit<ModelForm, 'shape'> = {
  input: { type: 'uint8', layout: 'NHWC', mean: [0, 0, 0], deviation: [1, 1, 1] },
  activation: 'none',
  // Drawing, hentai, neutral, porn, sexy: callers do not tell drawings from photographs.
  labels: ['clean', 'pornography', 'clean', 'pornography', 'sexy'],
  threshold: commonThreshold,
}

export const shippedForms: Record<'mobilenet-v2-mid' | 'inception-v3', ModelForm> = {
  'mobilenet-v2-mid': { shape: smallShape, ...shipped },
  'inception-v3': { shape: largeShape, ...shipped },
}

/** Weights as nsfwjs ships them: a value is `byte * scale + min`. */
export type Weights = { shape: number[]; bytes: Uint8Array; scale: number; min: number }

export type Padding = 'same' | 'valid'

export type Convolution = {
  kind: 'conv'
  name: string
  input: string
  /** Height, width, channels in, channels out; when depthwise height, width, channels, 1. */
  kernel: Weights
  isDepthwise: boolean
  /** One factor for each output channel, from batch normalization. */
  factors: Float64Array
  bias: Float64Array
  stride: number
  padding: Padding
  activation: 'none' | 'relu' | 'relu6'
}

export type Dense = {
  kind: 'dense'
  name: string
  input: string
  /** Channels in, channels out. */
  kernel: Weights
  bias: Float64Array
  activation: 'none' | 'relu'
}

export type Pool = {
  kind: 'maxPool' | 'averagePool'
  name: string
  input: string
  side: number
  stride: number
  padding: Padding
}

export type Layer =
  | Convolution
  | Dense
  | Pool
  | { kind: 'add' | 'concat'; name: string; inputs: string[] }
  /** The mean of each channel over the whole picture. */
  | { kind: 'mean'; name: string; input: string }

/**
 * A network, whichever format of TensorFlow.js it was read from. The first layer's input is `picture`: for each byte of
 * a pixel `byte * pixelScale + pixelOffset`. The last layer gives one number for each class, and softmax follows.
 */
export type Network = { size: number; pixelScale: number; pixelOffset: number; layers: Layer[] }

/** The name of the input of a network. */
export const picture = 'picture'

/** The classes that a model tells apart, in the order of nsfwjs. */
export const classes = ['Drawing', 'Hentai', 'Neutral', 'Porn', 'Sexy'] as const

/** Computes the weights as TensorFlow.js does, but without rounding them to 32 bits. */
export function toValues({ bytes, scale, min }: Weights): Float64Array {
  // Takes a third of the time of `Float64Array.from`, which uses an iterator.
  const values = new Float64Array(bytes.length)
  for (let i = 0; i < bytes.length; i++) values[i] = (bytes[i] as number) * scale + min
  return values
}

/** The byte that stands for zero. The weights of all kernels have one; other weights may not. */
export function getZeroPoint({ scale, min }: Weights): number {
  const zero = Math.round(-min / scale)
  if (zero < 0 || zero > 255 || Math.abs(zero + min / scale) > 1e-3) throw new Error('No byte of these weights is zero')
  return zero
}

/** Reorders a kernel from TensorFlow's order to that of ONNX: channels out, channels in, height, width. */
export function toKernelOrder<T extends Uint8Array | Float32Array>(
  { kernel, isDepthwise }: Convolution,
  values: T,
  ordered: T,
): { shape: number[]; values: T } {
  const [height = 0, width = 0, third = 0, fourth = 0] = kernel.shape
  const [channelsIn, channelsOut] = isDepthwise ? [1, third] : [third, fourth]
  const area = height * width
  let at = 0
  for (let out = 0; out < channelsOut; out++) {
    for (let input = 0; input < channelsIn; input++) {
      for (let place = 0; place < area; place++) {
        ordered[at++] = values[(place * channelsIn + input) * channelsOut + out] as number
      }
    }
  }
  return { shape: [channelsOut, channelsIn, height, width], values: ordered }
}
