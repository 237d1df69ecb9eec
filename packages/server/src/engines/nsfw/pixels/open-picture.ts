import type { Metadata } from 'sharp'
import { findImageFormat } from '../../../domain/content/media-type.ts'
import { makeApngFrames } from './apng-frames.ts'
import { chooseFrames, type Frame } from './choose-frames.ts'
import type { FrameSource } from './frame-source.ts'
import { findUnusualGamma, makeGammaFrames } from './gamma.ts'
import { readJpegScans } from './jpeg-scans.ts'
import { defaultLimits, type Limits } from './limits.ts'
import { allowFourLoaders } from './loaders.ts'
import { findApng } from './read-apng.ts'
import { newOverLimit, newUnsupported, Refusal, type Unscanned } from './refusal.ts'
import { readMetadata } from './render.ts'
import { makeRolledFrames } from './rolled-frames.ts'
import { makeStillFrame } from './still-frame.ts'

export type { Frame, Unscanned }

export type Picture = { frames: Frame[]; isAnimated: boolean }

export type OpenOptions = {
  /** At most so many frames, on one background each, are chosen. */
  maxChosen?: number
  /** Both sizes will be asked for. */
  both?: boolean
  limits?: Limits
}

/**
 * Bytes of strangers to what the models look at. Runs where it can be killed: the limits bound what is known from the
 * header, not what a decoder does with the rest.
 */
export async function openPicture(bytes: Buffer, options: OpenOptions = {}): Promise<Picture | Unscanned> {
  const { maxChosen = 16, both = false, limits = defaultLimits } = options
  allowFourLoaders()
  try {
    const header = await readHeader(bytes)
    const frameSources = findFrameSources(bytes, header, { both, limits })
    const frames = await chooseFrames(frameSources, maxChosen)
    return { frames, isAnimated: (frameSources[0]?.frames ?? 0) > 1 }
  } catch (error) {
    if (error instanceof Refusal) return { unscanned: error.unscanned, reason: error.message }
    throw error
  }
}

type Header = { format: string; width: number; height: number; pages: number; metadata: Metadata }

/** The first bytes decide what it is, and libvips must agree. */
async function readHeader(bytes: Buffer): Promise<Header> {
  const format = findImageFormat(bytes)
  if (format === undefined) throw newUnsupported('neither JPEG nor PNG, GIF or WebP')
  const metadata = await readMetadata(bytes)
  if (format !== `image/${metadata.format}`) throw newUnsupported(`${format} that reads as ${metadata.format}`)
  const { width, height, pages = 1 } = metadata
  // libvips makes one pixel of a GIF that says it has none.
  const isEmptyGif = format === 'image/gif' && bytes.readUInt16LE(6) * bytes.readUInt16LE(8) === 0
  if (width < 1 || height < 1 || pages < 1 || isEmptyGif) throw newUnsupported('a picture without pixels')
  return { format, width, height, pages, metadata }
}

type FindOptions = { both: boolean; limits: Limits }

function findFrameSources(bytes: Buffer, header: Header, { both, limits }: FindOptions): FrameSource[] {
  const { format, pages } = header
  checkSize(header, limits)
  if (format === 'image/jpeg') checkJpeg(bytes, header, limits)
  if (format === 'image/png') {
    const apng = findApng(bytes)
    const gamma = findUnusualGamma(bytes)
    if (apng !== undefined) {
      if (gamma !== undefined) throw newUnsupported('an animation with an unusual gamma')
      const frameSource = makeApngFrames(apng)
      if (frameSource.frames > limits.maxApngFrames) throw newOverLimit(`${frameSource.frames} frames`)
      checkAnimation(header, frameSource, limits)
      return [frameSource]
    }
    checkInterlaced(header, limits)
    const still = makeStillFrame(bytes, { isPng: true, both })
    return gamma === undefined ? [still] : [still, makeGammaFrames(bytes, gamma)]
  }
  if (pages === 1) return [makeStillFrame(bytes, { isPng: false, both })]
  const frameSource = makeRolledFrames(bytes, header, limits.maxHeldBytes)
  checkAnimation(header, frameSource, limits)
  return [frameSource]
}

function checkSize({ width, height }: Header, { maxPixels, maxSide }: Limits) {
  if (width * height > maxPixels || Math.max(width, height) > maxSide) throw newOverLimit(`${width} x ${height} pixels`)
}

function checkJpeg(bytes: Buffer, { width, height }: Header, limits: Limits) {
  const { scans, heldBytes } = readJpegScans(bytes)
  if (scans > limits.maxJpegScans || scans * width * height > limits.maxJpegScanPixels) {
    throw newOverLimit(`${scans} scans of ${width} x ${height} pixels`)
  }
  if (heldBytes > limits.maxHeldBytes) throw newOverLimit(`${width} x ${height} pixels in several scans`)
}

/** All rows are held until the last of seven passes. */
function checkInterlaced({ width, height, metadata }: Header, { maxHeldBytes }: Limits) {
  const channelBytes = metadata.depth === 'ushort' ? 2 : 1
  const heldBytes = width * height * metadata.channels * channelBytes
  if (metadata.isProgressive && heldBytes > maxHeldBytes) throw newOverLimit(`${width} x ${height} pixels interlaced`)
}

function checkAnimation({ width, height }: Header, { frames, framesPerPass, heldBytes }: FrameSource, limits: Limits) {
  if (frames > limits.maxFrames) throw newOverLimit(`${frames} frames`)
  // The second pass decodes what the first one did, to get behind it, and so on.
  const passes = (Math.ceil(frames / framesPerPass) + 1) / 2
  if (heldBytes > limits.maxHeldBytes || width * height * frames * passes > limits.maxAnimationPixels) {
    throw newOverLimit(`${frames} frames of ${width} x ${height} pixels`)
  }
}
