import { decodeDetail, type FrameSource, once, type Size, singleFrame } from './frame-sources.ts'
import { readPng } from './png.ts'
import { newOverLimit, openSharp, type Raster, refuseErrors, renderAgain } from './render.ts'

/**
 * The picture as it is stored, for viewers that ignore the orientation that a camera notes. A picture that is squashed
 * into a square can be turned afterwards, so it is not decoded again.
 */
export function makeStoredFrame(upright: FrameSource, orientation: number): FrameSource {
  const { width, height } = upright.size
  return {
    ...upright,
    // A frame of hidden colours exists only after the picture was read.
    get frames() {
      return upright.frames
    },
    size: orientation > 4 ? { width: height, height: width } : upright.size,
    readDetail: undefined,
    async read(first, count, shape) {
      const rasters = await upright.read(first, count, shape)
      return rasters.map((raster) => turnBack(raster, shape.side, orientation))
    },
  }
}

/** Reads each pixel from where the orientation has put it. */
export function turnBack({ data, channels }: Raster, side: number, orientation: number): Raster {
  const last = side - 1
  const isMirrored = [2, 3, 6, 7].includes(orientation)
  const isFlipped = [3, 4, 7, 8].includes(orientation)
  const stored = Buffer.allocUnsafe(data.length)
  for (let y = 0, to = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const [across, down] = orientation > 4 ? [y, x] : [x, y]
      const from = ((isFlipped ? last - down : down) * side + (isMirrored ? last - across : across)) * channels
      for (let i = 0; i < channels; i++) stored[to++] = data[from + i] as number
    }
  }
  return { data: stored, channels }
}

/** Memory of 100 MB in 16 bits. Each gamma of a PNG decodes it again. */
const maxGammaPixels = 12_000_000

/**
 * The picture as a browser shows it. The gamma is applied to every pixel before the picture becomes smaller, as browsers
 * do: a mean of stored values would show another picture wherever pixels alternate. Values have 16 bits until then,
 * because a hidden picture may lie in the lowest of them.
 */
export function makeGammaFrame(bytes: Buffer, size: Size, gamma: number): FrameSource {
  const readDetail = once(async () => {
    const data = await applyGamma(bytes, size, gamma)
    return decodeDetail({ bytes: data, options: { raw: { ...size, channels: 4 }, autoOrient: false } }, size)
  })
  return {
    ...singleFrame,
    size,
    isTiny: false,
    read: async (_first, _count, shape) => [await renderAgain(await readDetail(), shape)],
    readDetail,
  }
}

async function applyGamma(bytes: Buffer, { width, height }: Size, gamma: number): Promise<Buffer> {
  if (width * height > maxGammaPixels) throw newOverLimit(`${width} x ${height} pixels with an unusual gamma`)
  const exponent = 1 / (2.2 * gamma)
  const curve = Uint8Array.from({ length: 65_536 }, (_, value) => Math.round(255 * (value / 65_535) ** exponent))
  const wide = await readPng({ bytes }, (source) => {
    const pipeline = openSharp(source).ensureAlpha().toColourspace('rgb16')
    return refuseErrors(() => pipeline.raw({ depth: 'ushort' }).toBuffer())
  })
  const values = new Uint16Array(wide.buffer, wide.byteOffset, wide.length / 2)
  const data = Buffer.allocUnsafe(values.length)
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number
    data[i] = i % 4 === 3 ? value >> 8 : (curve[value] as number)
  }
  return data
}
