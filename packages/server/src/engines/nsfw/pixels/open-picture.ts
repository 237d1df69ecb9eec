import type { Metadata } from 'sharp'
import { findImageFormat } from '../../../domain/content/image-format.ts'
import { makeApngReel } from './apng-reel.ts'
import { chooseFrames, type Frame } from './choose-frames.ts'
import { findUnusualGamma, makeGammaReel } from './gamma.ts'
import { readJpegScans } from './jpeg-scans.ts'
import { defaultLimits, type Limits } from './limits.ts'
import { allowFourLoaders } from './loaders.ts'
import { findApng } from './read-apng.ts'
import type { Reel } from './reel.ts'
import { newOverLimit, newUnsupported, Refusal, type Unscanned } from './refusal.ts'
import { readMetadata } from './render.ts'
import { makeRollReel } from './roll-reel.ts'
import { makeStillReel } from './still-reel.ts'

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
    const reels = findReels(bytes, header, { both, limits })
    const frames = await chooseFrames(reels, maxChosen)
    return { frames, isAnimated: (reels[0]?.frames ?? 0) > 1 }
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

function findReels(bytes: Buffer, header: Header, { both, limits }: FindOptions): Reel[] {
  const { format, pages } = header
  checkSize(header, limits)
  if (format === 'image/jpeg') checkJpeg(bytes, header, limits)
  if (format === 'image/png') {
    const apng = findApng(bytes)
    const gamma = findUnusualGamma(bytes)
    if (apng !== undefined) {
      if (gamma !== undefined) throw newUnsupported('an animation with an unusual gamma')
      const reel = makeApngReel(apng)
      if (reel.frames > limits.maxApngFrames) throw newOverLimit(`${reel.frames} frames`)
      checkAnimation(header, reel, limits)
      return [reel]
    }
    checkInterlaced(header, limits)
    const still = makeStillReel(bytes, { isPng: true, both })
    return gamma === undefined ? [still] : [still, makeGammaReel(bytes, gamma)]
  }
  if (pages === 1) return [makeStillReel(bytes, { isPng: false, both })]
  const reel = makeRollReel(bytes, header, limits.maxHeldBytes)
  checkAnimation(header, reel, limits)
  return [reel]
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

function checkAnimation({ width, height }: Header, { frames, framesPerPass, heldBytes }: Reel, limits: Limits) {
  if (frames > limits.maxFrames) throw newOverLimit(`${frames} frames`)
  // The second pass decodes what the first one did, to get behind it, and so on.
  const passes = (Math.ceil(frames / framesPerPass) + 1) / 2
  if (heldBytes > limits.maxHeldBytes || width * height * frames * passes > limits.maxAnimationPixels) {
    throw newOverLimit(`${frames} frames of ${width} x ${height} pixels`)
  }
}
