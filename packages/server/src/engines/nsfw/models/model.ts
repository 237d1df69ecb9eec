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
