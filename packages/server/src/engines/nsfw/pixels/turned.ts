import type { FrameSource } from './frame-sources.ts'
import type { Raster } from './render.ts'

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
