import sharp, { type Metadata, type Sharp, type SharpOptions } from 'sharp'
import { newUnsupported } from './refusal.ts'

/** What a model takes: a square, the picture squashed into it, by the kernel nearest to how the model was trained. */
export type Shape = { side: number; kernel: 'linear' | 'lanczos3' }

export const smallShape: Shape = { side: 224, kernel: 'linear' }
export const largeShape: Shape = { side: 299, kernel: 'lanczos3' }

/** 8 bits a channel, sRGB; the fourth channel is alpha, not multiplied in. */
export type Raster = { data: Buffer; channels: 3 | 4 }

export type Source = { bytes: Buffer; options?: SharpOptions }

/** Frames one below the other when there are several. Shrinks while it decodes where the format can. */
export async function render({ bytes, options }: Source, shape: Shape): Promise<Raster> {
  const { side, kernel } = shape
  const pipeline = openSharp({ bytes, ...(options && { options }) })
    .resize(side, side, { fit: 'fill', kernel })
    .toColourspace('srgb')
  return toRaster(pipeline)
}

/** At its own size. */
export const renderWhole = (source: Source): Promise<Raster> => toRaster(openSharp(source).toColourspace('srgb'))

export async function readMetadata(bytes: Buffer): Promise<Metadata> {
  return attempt(() => sharp(bytes, { failOn: 'none', limitInputPixels: false }).metadata())
}

/** What a viewer shows of a truncated picture is scanned like the rest. The limits were checked before. */
export const openSharp = ({ bytes, options }: Source): Sharp =>
  sharp(bytes, { failOn: 'none', limitInputPixels: false, autoOrient: true, ...options })

/** Whatever libvips says against a picture is the fault of the picture. */
export async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw newUnsupported(toReason(error))
  }
}

async function toRaster(pipeline: Sharp): Promise<Raster> {
  const { data, info } = await attempt(() => pipeline.raw().toBuffer({ resolveWithObject: true }))
  if (info.channels !== 3 && info.channels !== 4) throw newUnsupported(`${info.channels} channels`)
  return { data, channels: info.channels }
}

const toReason = (error: unknown) => (error instanceof Error ? error.message : String(error)).trim().slice(0, 200)
