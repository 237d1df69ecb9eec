import type { Shape } from '../models/model.ts'
import { isTransparent } from './backgrounds.ts'
import { applyProfile } from './colours.ts'
import { type OpaqueFrames, readOpaqueFrames } from './opaque-frames.ts'
import { readPng } from './png.ts'
import {
  type Detail,
  newOverLimit,
  openSharp,
  type Raster,
  refuseErrors,
  render,
  renderDetail,
  renderWhole,
  type Source,
  splitRoll,
} from './render.ts'

/** The frames of a picture in order; a still picture has one. */
export type FrameSource = {
  frames: number
  /** How many frames one call of `read` may ask for. */
  framesPerPass: number
  /** Memory that the decoder holds at once. */
  heldBytes: number
  /** Width and height of a frame as viewers show it. */
  size: Size
  /** Enlarging a frame for a model costs more than decoding it twice. */
  isTiny: boolean
  /** Decodes frames from `first` on, and all before them too: the formats allow no other way. */
  read(first: number, count: number, shape: Shape): Promise<Raster[]>
  /** The frames of an animation that has no transparency and is small enough to hold all of its pixels. */
  readOpaque?: (() => Promise<OpaqueFrames | undefined>) | undefined
  /** Decodes the only frame larger than the models take it, in its own proportions. */
  readDetail: (() => Promise<Detail>) | undefined
}

export type Size = { width: number; height: number }

/** Frames of one pass: they take 50 MB in the small shape and 90 MB in the large one. */
export const maxFramesPerPass = 250

type StillOptions = {
  isPng: boolean
  both: boolean
  ignoreIcc?: boolean
  inFull?: boolean
  /** A colour profile that is applied after the picture is made smaller. */
  lateProfile?: Buffer | undefined
}

/**
 * A picture of one frame. Each shape is decoded from the bytes, because decoding small is cheaper than decoding once
 * for both. When both shapes are certain to be used, `both` decodes once, to twice the larger side.
 */
export function makeStillFrame(
  bytes: Buffer,
  size: Size,
  { isPng, both, ignoreIcc = false, inFull = false, lateProfile }: StillOptions,
): FrameSource {
  const source = { bytes, options: { ignoreIcc }, inFull: inFull ? size : undefined }
  const decode = <T>(work: (source: Source) => Promise<T>) => (isPng ? readPng(source, work) : work(source))
  const shared = once(() => decode(decodeOnce))
  const rendered = new Map<string, Promise<Raster>>()
  const finish = async (detail: Detail) => (lateProfile === undefined ? detail : applyProfile(detail, lateProfile))
  const renderShape = async (shape: Shape) => {
    const raster = await (both ? render(await shared(), shape) : decode((source) => render(source, shape)))
    return finish({ ...raster, width: shape.side, height: shape.side })
  }
  return {
    frames: 1,
    framesPerPass: 1,
    heldBytes: 0,
    size,
    isTiny: false,
    async read(_first, _count, shape) {
      const key = `${shape.side} ${shape.kernel}`
      const raster = rendered.get(key) ?? renderShape(shape)
      rendered.set(key, raster)
      return [await raster]
    },
    readDetail: once(async () => finish(await decode((source) => decodeDetail(source, size)))),
  }
}

/** Memory of 100 MB: the colours under transparency are lost as soon as libvips scales a picture. */
const maxHiddenPixels = 25_000_000

/**
 * The picture with the colours under its transparency, which programs show that drop the alpha channel. It has a frame
 * only when the still picture, which must be read first, is transparent.
 */
export function withHiddenFrame(still: FrameSource, bytes: Buffer, isPng: boolean): FrameSource[] {
  const { width, height } = still.size
  let hasHidden = false
  const readOpaque = once(async (): Promise<Source> => {
    if (width * height > maxHiddenPixels) throw newOverLimit(`${width} x ${height} pixels with transparency`)
    const { data, channels } = await (isPng ? readPng({ bytes }, renderWhole) : renderWhole({ bytes }))
    return { bytes: dropAlpha(data, channels), options: { raw: { width, height, channels: 3 }, autoOrient: false } }
  })
  const noting: FrameSource = {
    ...still,
    async read(first, count, shape) {
      const rasters = await still.read(first, count, shape)
      hasHidden ||= rasters.some(isTransparent)
      return rasters
    },
  }
  const hidden: FrameSource = {
    ...still,
    get frames() {
      return hasHidden ? 1 : 0
    },
    read: async (_first, _count, shape) => [await render(await readOpaque(), shape)],
    readDetail: undefined,
  }
  return [noting, hidden]
}

/** Moves the colours together in the same memory. */
function dropAlpha(data: Buffer, channels: 3 | 4): Buffer {
  if (channels === 3) return data
  let to = 0
  for (let from = 0; from < data.length; from += 4) {
    data[to++] = data[from] as number
    data[to++] = data[from + 1] as number
    data[to++] = data[from + 2] as number
  }
  return data.subarray(0, to)
}

/** Does the work at the first call; later calls get the same result. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= work()
    return result
  }
}

/** Enough for the sixteen panels of a collage at the size that a model takes. */
const maxDetailPixels = 2_000_000

/** Renders a picture in its own proportions, so small that it can be kept, and large enough to cut parts from it. */
export async function decodeDetail(source: Source, { width, height }: Size): Promise<Detail> {
  const scale = Math.min(1, Math.sqrt(maxDetailPixels / (width * height)))
  const [toWidth = 1, toHeight = 1] = [width, height].map((side) => Math.max(1, Math.round(side * scale)))
  return renderDetail(source, toWidth, toHeight)
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

/** Memory for the pixels of all frames. */
const maxPixelBytes = 64 * 1024 * 1024

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
    const roll = await render({ bytes, options: { page: first, pages: count, autoOrient: false } }, shape)
    return splitRoll(roll, shape, count)
  }
  const decoderBytes = canvasBytes * (composing + (holdsAllFrames ? Math.min(framesPerPass, animation.pages) : 0))
  const pixelBytes = canvasBytes * animation.pages
  const canHoldPixels = pixelBytes <= maxPixelBytes && decoderBytes + pixelBytes <= maxHeldBytes

  return {
    frames: animation.pages,
    framesPerPass,
    size: animation,
    readDetail: undefined,
    isTiny: animation.width * animation.height <= maxTinyPixels,
    heldBytes: decoderBytes,
    read,
    readOpaque: canHoldPixels ? once(() => readOpaqueFrames(bytes, animation)) : undefined,
  }
}
