import type { Metadata, Sharp, SharpOptions } from 'sharp'
import type { Shape } from '../models/model.ts'
import { sharp } from '../sharp.ts'

/** `UnsupportedImage` when a picture cannot be decoded, `ScanLimitExceeded` when decoding it would cost too much. */
export type Unscanned = { unscanned: 'UnsupportedImage' | 'ScanLimitExceeded'; reason: string }

/** Thrown inside this folder only: `openPicture` turns it into a value. */
export class Refusal extends Error {
  readonly unscanned: Unscanned['unscanned']

  constructor(unscanned: Unscanned['unscanned'], reason: string) {
    super(reason)
    this.unscanned = unscanned
  }
}

export const newUnsupported = (reason: string) => new Refusal('UnsupportedImage', reason)

export const newOverLimit = (reason: string) => new Refusal('ScanLimitExceeded', reason)

/** 8 bits a channel, sRGB; the fourth channel is alpha, not multiplied in. */
export type Raster = { data: Buffer; channels: 3 | 4 }

/** A picture at a size from which its parts can be cut; RGB or RGBA. */
export type Detail = Raster & { width: number; height: number }

export type Source = {
  bytes: Buffer
  options?: SharpOptions
  /**
   * The size of a JPEG of which all frequencies are decoded. Otherwise libvips leaves out those that a smaller picture
   * does not need.
   */
  inFull?: { width: number; height: number } | undefined
}

/** Renders a picture in the given shape; several frames lie one below the other. Shrinks while decoding where the format can. */
export async function render(source: Source, { side, kernel }: Shape): Promise<Raster> {
  return toRaster(openSharp(source).resize(side, side, { fit: 'fill', kernel }).toColourspace('srgb'))
}

/** Renders a picture at a size of its own proportions. */
export async function renderDetail(source: Source, width: number, height: number): Promise<Detail> {
  const pipeline = openSharp(source).resize(width, height, { fit: 'fill', kernel: 'linear' }).toColourspace('srgb')
  return { ...(await toRaster(pipeline)), width, height }
}

/** Renders a picture that is decoded already. */
export const renderAgain = ({ data, width, height, channels }: Detail, shape: Shape): Promise<Raster> =>
  render({ bytes: data, options: { raw: { width, height, channels }, autoOrient: false } }, shape)

/** Renders a picture at its own size. */
export const renderWhole = (source: Source): Promise<Raster> => toRaster(openSharp(source).toColourspace('srgb'))

/** Cuts frames that lie one below the other apart. */
export function splitRoll({ data, channels }: Raster, { side }: Shape, count: number): Raster[] {
  const frameBytes = side * side * channels
  if (data.length !== frameBytes * count) throw newUnsupported('fewer frames than stated')
  return Array.from({ length: count }, (_, i) => ({
    data: data.subarray(i * frameBytes, (i + 1) * frameBytes),
    channels,
  }))
}

export async function readMetadata(bytes: Buffer): Promise<Metadata> {
  return refuseErrors(() => sharp(bytes, { failOn: 'none', limitInputPixels: false }).metadata())
}

/** Opens truncated pictures too, because viewers show what there is of them. The caller has checked the limits. */
export function openSharp({ bytes, options, inFull }: Source): Sharp {
  const picture = sharp(bytes, { failOn: 'none', limitInputPixels: false, autoOrient: true, ...options })
  // Cutting out a part, here the whole, makes sharp decode all pixels before it resizes them.
  return inFull === undefined ? picture : picture.extract({ left: 0, top: 0, ...inFull })
}

/** Turns every error of libvips into a refusal of the picture. */
export async function refuseErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw newUnsupported(toReason(error))
  }
}

async function toRaster(pipeline: Sharp): Promise<Raster> {
  const { data, info } = await refuseErrors(() => pipeline.raw().toBuffer({ resolveWithObject: true }))
  if (info.channels !== 3 && info.channels !== 4) throw newUnsupported(`${info.channels} channels`)
  return { data, channels: info.channels }
}

const toReason = (error: unknown) => (error instanceof Error ? error.message : String(error)).trim().slice(0, 200)
