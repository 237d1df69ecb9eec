import type { Shape } from '../models/model.ts'
import { type Fingerprint, toOpaqueFingerprint } from './fingerprints.ts'
import { openSharp, type Raster, render, splitRoll } from './render.ts'

/**
 * The frames of an animation without transparency, at their own size. The frames to classify are chosen there, and only
 * those are scaled: scaling all of them, with an alpha channel that changes nothing, takes four times as long as decoding.
 */
export type OpaqueFrames = {
  fingerprints: Fingerprint[]
  read(indexes: number[], shape: Shape): Promise<Raster[]>
}

type Animation = { width: number; height: number; pages: number }

/** Frames that are scaled at once: a call of libvips takes as long as scaling a frame. */
const maxFramesAtOnce = 16
/** Memory for their pixels, which are copied. */
const maxCopiedBytes = 16 * 1024 * 1024

/**
 * Reads all frames. Undefined when one of them has transparency or cannot be decoded: the frames before a broken one are
 * classified when the animation is read pass by pass.
 */
export async function readOpaqueFrames(bytes: Buffer, animation: Animation): Promise<OpaqueFrames | undefined> {
  const { width, height, pages } = animation
  // The first frame of nearly all animations with transparency has it too.
  const first = await readPixels(bytes, 1)
  if (first === undefined || toOpaqueFingerprint(first, animation) === undefined) return undefined
  const pixels = await readPixels(bytes, pages)
  const area = width * height
  if (pixels?.length !== area * pages) return undefined
  const getFrame = (index: number) => pixels.subarray(index * area, (index + 1) * area)
  const fingerprints: Fingerprint[] = []
  for (let index = 0; index < pages; index++) {
    const fingerprint = toOpaqueFingerprint(getFrame(index), animation)
    if (fingerprint === undefined) return undefined
    fingerprints.push(fingerprint)
  }

  const framesAtOnce = Math.max(1, Math.min(maxFramesAtOnce, Math.floor(maxCopiedBytes / (area * 4))))
  const readSome = async (indexes: number[], shape: Shape) => {
    const roll = new Int32Array(Math.ceil((indexes.length * area) / 4) * 4)
    for (const [i, index] of indexes.entries()) roll.set(getFrame(index), i * area)
    const raw = { width, height: height * indexes.length, channels: 3 as const, pageHeight: height }
    const source = { bytes: dropAlpha(roll).subarray(0, indexes.length * area * 3), options: { raw, pages: -1 } }
    return splitRoll(await render(source, shape), shape, indexes.length)
  }

  return {
    fingerprints,
    async read(indexes, shape) {
      const rasters: Raster[] = []
      for (let at = 0; at < indexes.length; at += framesAtOnce) {
        rasters.push(...(await readSome(indexes.slice(at, at + framesAtOnce), shape)))
      }
      return rasters
    },
  }
}

/**
 * Decodes the first `pages` frames; undefined when one of them cannot be decoded. A number is a pixel, with red in its
 * lowest byte and alpha in its highest one.
 */
async function readPixels(bytes: Buffer, pages: number): Promise<Int32Array | undefined> {
  const pipeline = openSharp({ bytes, options: { page: 0, pages, autoOrient: false } })
  const decoding = pipeline.toColourspace('srgb').ensureAlpha().raw().toBuffer()
  const data = await decoding.catch(() => undefined)
  return data && new Int32Array(data.buffer, data.byteOffset, data.length / 4)
}

/** Moves the colours together in the same memory, four pixels at once. */
function dropAlpha(pixels: Int32Array): Buffer {
  let to = 0
  for (let from = 0; from < pixels.length; from += 4) {
    const [second, third] = [pixels[from + 1] as number, pixels[from + 2] as number]
    pixels[to++] = ((pixels[from] as number) & 0xffffff) | (second << 24)
    pixels[to++] = ((second >>> 8) & 0xffff) | (third << 16)
    pixels[to++] = ((third >>> 16) & 0xff) | ((pixels[from + 3] as number) << 8)
  }
  return Buffer.from(pixels.buffer, 0, to * 4)
}
