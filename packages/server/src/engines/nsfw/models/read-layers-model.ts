import type { Bundle } from './bundle.ts'
import { type Layer, type Network, type Padding, picture, toValues } from './network.ts'

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

/** InceptionV3: layers of Keras. Batch normalisation and activation are folded into the convolution before them. */
export function readLayersModel(bundle: Bundle, size: number): Network {
  const { layers: kerasLayers } = (bundle.topology as { model_config: { config: { layers: KerasLayer[] } } })
    .model_config.config
  // Names that stand for another layer's output.
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
        const stride = getSame(config.strides)
        const place = { kind: 'conv', name, input, stride, padding, isDepthwise: false } as const
        layers.push({ ...place, kernel, factors, bias, activation: 'none' })
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
        if (config.activation !== 'relu') throw new Error(`${config.activation} is not known`)
        getConvolution(input).activation = 'relu'
        aliases.set(name, input)
        break
      case 'MaxPooling2D':
      case 'AveragePooling2D': {
        const side = getSame(config.pool_size)
        const stride = getSame(config.strides)
        // The last one takes the whole 8 by 8 that are left.
        if (side === 8) layers.push({ kind: 'mean', name, input })
        else
          layers.push({ kind: kind === 'MaxPooling2D' ? 'maxPool' : 'averagePool', name, input, side, stride, padding })
        break
      }
      case 'Concatenate':
        layers.push({ kind: 'concat', name, inputs })
        break
      case 'Dense': {
        const [kernel, bias] = [bundle.get(`${name}/kernel`), toValues(bundle.get(`${name}/bias`))]
        layers.push({
          kind: 'dense',
          name,
          input,
          kernel,
          bias,
          activation: config.activation === 'relu' ? 'relu' : 'none',
        })
        break
      }
      case 'Flatten':
      case 'Dropout':
        aliases.set(name, input)
        break
      default:
        throw new Error(`No layer is known for ${kind}`)
    }
  }
  return { size, pixelScale: 1 / 255, pixelOffset: 0, layers }
}

function getSame([height, width]: number[] = []): number {
  if (height === undefined || height !== width) throw new Error('Only squares are known')
  return height
}
