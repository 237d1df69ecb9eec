import type { Shape } from '../models/model.ts'
import { applyProfile } from './colours.ts'
import { type Fingerprint, toOpaqueFingerprint } from './fingerprints.ts'
import { isTransparent } from './lines.ts'
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

/** Properties that all sources of a single frame share. */
export const singleFrame = { frames: 1, framesPerPass: 1, heldBytes: 0 }

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
    ...singleFrame,
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

/** Twice the side of the larger shape. */
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

/**
 * The frames of an animation without transparency, at their own size. The frames to classify are chosen there, and only
 * those are scaled: scaling all of them, with an alpha channel that changes nothing, takes four times as long as decoding.
 */
type OpaqueFrames = {
  fingerprints: Fingerprint[]
  read(indexes: number[], shape: Shape): Promise<Raster[]>
}

/** Frames that are scaled at once: a call of libvips takes as long as scaling a frame. */
const maxFramesAtOnce = 16
/** Memory for their pixels, which are copied. */
const maxCopiedBytes = 16 * 1024 * 1024

/**
 * Reads all frames. Undefined when one of them has transparency or cannot be decoded: the frames before a broken one are
 * classified when the animation is read pass by pass.
 */
async function readOpaqueFrames(bytes: Buffer, animation: Animation): Promise<OpaqueFrames | undefined> {
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
    const source = { bytes: packColours(roll).subarray(0, indexes.length * area * 3), options: { raw, pages: -1 } }
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
function packColours(pixels: Int32Array): Buffer {
  let to = 0
  for (let from = 0; from < pixels.length; from += 4) {
    const [second, third] = [pixels[from + 1] as number, pixels[from + 2] as number]
    pixels[to++] = ((pixels[from] as number) & 0xffffff) | (second << 24)
    pixels[to++] = ((second >>> 8) & 0xffff) | (third << 16)
    pixels[to++] = ((third >>> 16) & 0xff) | ((pixels[from + 3] as number) << 8)
  }
  return Buffer.from(pixels.buffer, 0, to * 4)
}
