import type { Shape } from '../models/model.ts'
import { readPng, readPngChunks } from './png.ts'
import { newUnsupported, openSharp, type Raster, refuseErrors, render, type Source } from './render.ts'

/** The frames of a picture in order; a still picture has one. */
export type FrameSource = {
  frames: number
  /** How many frames one call of `read` may ask for. */
  framesPerPass: number
  /** Memory that the decoder holds at once. */
  heldBytes: number
  /** Enlarging a frame for a model costs more than decoding it twice. */
  isTiny: boolean
  /** Decodes frames from `first` on, and all before them too: the formats allow no other way. */
  read(first: number, count: number, shape: Shape): Promise<Raster[]>
}

/** Frames of one pass: they take 50 MB in the small shape and 90 MB in the large one. */
export const maxFramesPerPass = 250

/**
 * A picture of one frame. Each shape is decoded from the bytes, because decoding small is cheaper than decoding once
 * for both. When both shapes are certain to be used, `both` decodes once, to twice the larger side.
 */
export function makeStillFrame(bytes: Buffer, options: { isPng: boolean; both: boolean }): FrameSource {
  const decode = <T>(work: (source: Source) => Promise<T>) =>
    options.isPng ? readPng({ bytes }, work) : work({ bytes })
  let shared: Promise<Source> | undefined
  const read = async (_first: number, _count: number, shape: Shape): Promise<Raster[]> => {
    if (!options.both) return [await decode((source) => render(source, shape))]
    shared ??= decode(decodeOnce)
    return [await render(await shared, shape)]
  }
  return { frames: 1, framesPerPass: 1, heldBytes: 0, isTiny: false, read }
}

const sharedSide = 598

async function decodeOnce(source: Source): Promise<Source> {
  const pipeline = openSharp(source)
    .resize(sharedSide, sharedSide, { fit: 'fill', kernel: 'linear', withoutEnlargement: true })
    .toColourspace('srgb')
  const { data, info } = await refuseErrors(() => pipeline.raw().toBuffer({ resolveWithObject: true }))
  return { bytes: data, options: { raw: { width: info.width, height: info.height, channels: info.channels } } }
}

/** Pixels of a canvas that a decoder fills in less time than a model's square takes to be scaled. */
export const maxTinyPixels = 20_000

type Animation = { format: string; width: number; height: number; pages: number }

/** Animated GIF and WebP: libvips composes the frames into one tall picture and decodes it in one pass. */
export function makeAnimationFrames(bytes: Buffer, animation: Animation, maxHeldBytes: number): FrameSource {
  const canvasBytes = animation.width * animation.height * 4
  // Of a WebP whose frames are parts of the canvas, libvips holds all frames of the pass at full size; of a GIF it does
  // not.
  const holdsAllFrames = animation.format === 'image/webp'
  // The canvases that libvips needs to draw one frame over another, as measured.
  const composing = holdsAllFrames ? 6 : 3
  const affordable = Math.floor(maxHeldBytes / canvasBytes) - composing
  const framesPerPass = holdsAllFrames ? Math.min(maxFramesPerPass, Math.max(1, affordable)) : maxFramesPerPass

  const read = async (first: number, count: number, shape: Shape): Promise<Raster[]> => {
    const { data, channels } = await render({ bytes, options: { page: first, pages: count, autoOrient: false } }, shape)
    const frameBytes = shape.side * shape.side * channels
    if (data.length !== frameBytes * count) throw newUnsupported('fewer frames than stated')
    return Array.from({ length: count }, (_, i) => ({
      data: data.subarray(i * frameBytes, (i + 1) * frameBytes),
      channels,
    }))
  }

  return {
    frames: animation.pages,
    framesPerPass,
    isTiny: animation.width * animation.height <= maxTinyPixels,
    heldBytes: canvasBytes * (composing + (holdsAllFrames ? Math.min(framesPerPass, animation.pages) : 0)),
    read,
  }
}

/** Within this range a picture looks much the same with and without its gamma. */
const usualGamma = { least: 0.3, most: 0.7 }

/**
 * A PNG may state its gamma. Browsers apply it, libvips and many viewers do not, so an extreme value makes one file
 * show two pictures. Undefined when the value is missing, usual, or overruled by a colour profile.
 */
export function findUnusualGamma(bytes: Buffer): number | undefined {
  let gamma: number | undefined
  for (const { type, data } of readPngChunks(bytes)) {
    if (type === 'sRGB' || type === 'iCCP' || type === 'cICP') return undefined
    if (type === 'gAMA' && data.length === 4) gamma = data.readUInt32BE(0) / 100_000
    if (type === 'IDAT') break
  }
  if (gamma === undefined || gamma === 0 || (gamma >= usualGamma.least && gamma <= usualGamma.most)) return undefined
  return gamma
}

/** The picture as a browser shows it, computed in 16 bits, because a hidden picture may lie in the lowest of them. */
export function makeGammaFrame(bytes: Buffer, gamma: number): FrameSource {
  const exponent = 1 / (2.2 * gamma)
  const curve = Uint8Array.from({ length: 65_536 }, (_, value) => Math.round(255 * (value / 65_535) ** exponent))

  const read = async (_first: number, _count: number, { side, kernel }: Shape): Promise<Raster[]> => {
    const wide = await readPng({ bytes }, (source) => {
      const pipeline = openSharp(source).resize(side, side, { fit: 'fill', kernel }).ensureAlpha()
      return refuseErrors(() => pipeline.toColourspace('rgb16').raw({ depth: 'ushort' }).toBuffer())
    })
    const values = new Uint16Array(wide.buffer, wide.byteOffset, wide.length / 2)
    const data = Buffer.from(Uint8Array.from(values, (value, i) => (i % 4 === 3 ? value >> 8 : (curve[value] ?? 0))))
    return [{ data, channels: 4 }]
  }

  return { frames: 1, framesPerPass: 1, heldBytes: 0, isTiny: false, read }
}
