import type { Metadata } from 'sharp'
import { findImageFormat } from '../../../domain/content/image-format.ts'
import { sharp } from '../sharp.ts'
import { type Apng, findApng, makeApngFrames } from './apng.ts'
import { chooseViews, type Pass, type View } from './choose-views.ts'
import { findUnusualGammas, isUnusualProfile } from './colours.ts'
import { findEmbedded } from './embedded.ts'
import { makeSeenViews } from './fingerprints.ts'
import { type FrameSource, makeAnimationFrames, makeStillFrame, withHiddenFrame } from './frame-sources.ts'
import { findJpegSizes, readJpegScans } from './jpeg.ts'
import { newOverLimit, newUnsupported, Refusal, readMetadata, type Unscanned } from './render.ts'
import { makeGammaFrame, makeStoredFrame } from './viewer-frames.ts'

export type { Pass, Unscanned, View }

export type Picture = {
  isAnimated: boolean
  framesTotal: number
  /**
   * Decodes the views that differ visibly from each other, pass by pass, as they are asked for. Throws a `Refusal` when
   * a part cannot be decoded.
   */
  passes(): AsyncGenerator<Pass>
}

export type OpenOptions = {
  /** Both shapes will be used. */
  both?: boolean
  /** Looks at each size at which programs decode a JPEG, also when its smallest one looks like the whole picture. */
  allSizes?: boolean
  limits?: Limits
}

/**
 * Limits on one picture. Within them the most expensive picture that was found, a WebP of noise with 600 frames of
 * 300 x 300 pixels, takes 26 s of a core and 431 MB without the limit on processor time, which ends its process at 10 s.
 */
type Limits = {
  /** Pixels of a still picture. */
  maxPixels: number
  /** The largest side of three of the four formats. A column of 50 million rows took 36 s. */
  maxSide: number
  maxFrames: number
  /** Frames of an animated PNG: composing one takes 6 ms here, however small it is. */
  maxApngFrames: number
  /** Pixels decoded over all passes, so the frames of a long animation count more than once. */
  maxAnimationPixels: number
  maxJpegScans: number
  /** Scans times pixels: every scan of a JPEG visits every pixel again. */
  maxJpegScanPixels: number
  /** Memory of a decoder that does not work row by row: progressive, interlaced, animated. */
  maxHeldBytes: number
}

const defaultLimits: Limits = {
  maxPixels: 50_000_000,
  maxSide: 65_535,
  maxFrames: 1_000,
  maxApngFrames: 500,
  maxAnimationPixels: 120_000_000,
  maxJpegScans: 100,
  maxJpegScanPixels: 600_000_000,
  maxHeldBytes: 150_000_000,
}

/**
 * Opens an untrusted picture, and decodes it into the views that the models classify. Call it only in a process that
 * can be killed: the limits bound what the header announces, not what a decoder does with the rest.
 */
export async function openPicture(bytes: Buffer, options: OpenOptions = {}): Promise<Picture | Unscanned> {
  const { both = false, allSizes = false, limits = defaultLimits } = options
  const findOptions = { both, allSizes, limits }
  allowFourLoaders()
  try {
    const header = await readHeader(bytes)
    const frameSources = await findFrameSources(bytes, header, findOptions)
    const framesTotal = frameSources[0]?.frames ?? 0
    const passes = () => chooseAllViews(frameSources, () => openEmbedded(bytes, { ...findOptions, both: false }))
    return { framesTotal, isAnimated: framesTotal > 1, passes }
  } catch (error) {
    if (error instanceof Refusal) return { unscanned: error.unscanned, reason: error.message }
    throw error
  }
}

/**
 * Several sources of the same frames are several ways to show them. Embedded pictures come last: most are smaller
 * copies of the picture itself, and need no classification of their own.
 */
async function* chooseAllViews(
  frameSources: FrameSource[],
  openOthers: () => AsyncGenerator<FrameSource>,
): AsyncGenerator<Pass> {
  const seen = makeSeenViews()
  for (const frameSource of frameSources) yield* chooseViews(frameSource, seen)
  for await (const frameSource of openOthers()) yield* chooseViews(frameSource, seen)
}

/** Content that only begins like a picture is left out. */
async function* openEmbedded(bytes: Buffer, options: FindOptions): AsyncGenerator<FrameSource> {
  for (const embedded of findEmbedded(bytes)) {
    const header = await readHeader(embedded).catch((error) => {
      if (error instanceof Refusal) return undefined
      throw error
    })
    if (header !== undefined) yield* await findFrameSources(embedded, header, options)
  }
}

type Header = { format: string; width: number; height: number; pages: number; metadata: Metadata }

/** The first bytes decide the format, and libvips must agree. */
async function readHeader(bytes: Buffer): Promise<Header> {
  const format = findImageFormat(bytes)
  if (format === undefined) throw newUnsupported('neither JPEG nor PNG, GIF or WebP')
  const metadata = await readMetadata(bytes)
  if (format !== `image/${metadata.format}`) throw newUnsupported(`${format} that reads as ${metadata.format}`)
  const { width, height, pages = 1 } = metadata
  // libvips makes one pixel of a GIF whose header states none.
  const isEmptyGif = format === 'image/gif' && bytes.readUInt16LE(6) * bytes.readUInt16LE(8) === 0
  if (width < 1 || height < 1 || pages < 1 || isEmptyGif) throw newUnsupported('a picture without pixels')
  return { format, width, height, pages, metadata }
}

type FindOptions = Required<OpenOptions>

async function findFrameSources(bytes: Buffer, header: Header, options: FindOptions): Promise<FrameSource[]> {
  const { both, limits } = options
  const { format, pages, metadata } = header
  checkSize(header, limits)
  const hasOddProfile = metadata.icc !== undefined && (await isUnusualProfile(metadata.icc))
  if (format === 'image/jpeg') {
    checkJpeg(bytes, header, limits)
    return findJpegs(bytes, header, { ...options, hasOddProfile })
  }
  if (format === 'image/png') {
    const apng = findApng(bytes)
    if (apng !== undefined) return [openApng(bytes, apng, { header, limits, hasOddProfile })]
    checkInterlaced(header, limits)
  }
  if (pages === 1) return findStills(bytes, header, { both, hasOddProfile })
  const frameSource = makeAnimationFrames(bytes, header, limits.maxHeldBytes)
  checkAnimation(header, frameSource, limits)
  if (hasOddProfile) throw newUnsupported('an animation with an unusual colour profile')
  return [frameSource]
}

function openApng(
  bytes: Buffer,
  apng: Apng,
  { header, limits, hasOddProfile }: { header: Header; limits: Limits; hasOddProfile: boolean },
): FrameSource {
  if (hasOddProfile || findUnusualGammas(bytes).length > 0) throw newUnsupported('an animation with unusual colours')
  const frameSource = makeApngFrames(apng)
  if (frameSource.frames > limits.maxApngFrames) throw newOverLimit(`${frameSource.frames} frames`)
  checkAnimation(header, frameSource, limits)
  return frameSource
}

/** The ways in which programs show a still PNG, GIF or WebP, the most common one first. */
function findStills(
  bytes: Buffer,
  { format, metadata }: Header,
  { both, hasOddProfile }: { both: boolean; hasOddProfile: boolean },
): FrameSource[] {
  const isPng = format === 'image/png'
  const { autoOrient: size, orientation = 1, hasAlpha } = metadata
  const still = makeStillFrame(bytes, size, { isPng, both })
  const frameSources = hasAlpha ? withHiddenFrame(still, bytes, isPng) : [still]
  if (hasOddProfile) frameSources.push(makeStillFrame(bytes, size, { isPng, both: false, ignoreIcc: true }))
  if (isPng) frameSources.push(...findUnusualGammas(bytes).map((gamma) => makeGammaFrame(bytes, size, gamma)))
  return withStored(frameSources, orientation)
}

/** The ways in which programs show a JPEG, the most common one first. */
function findJpegs(
  bytes: Buffer,
  { metadata }: Header,
  { both, allSizes, hasOddProfile }: FindOptions & { hasOddProfile: boolean },
): FrameSource[] {
  const { autoOrient: size, orientation = 1, icc: profile } = metadata
  const jpeg = { bytes, size, both, allSizes, profile, hasOddProfile, ignoreIcc: false }
  const sizes = [findJpegSizes(jpeg)]
  if (hasOddProfile) sizes.push(findJpegSizes({ ...jpeg, both: false, ignoreIcc: true }))
  const shown = sizes.flatMap(({ shown }) => shown)
  return [...withStored(shown, orientation), ...sizes.map(({ refusal }) => refusal)]
}

/** Adds each picture as it is stored, if its metadata turns it. */
const withStored = (frameSources: FrameSource[], orientation: number): FrameSource[] =>
  orientation > 1
    ? [...frameSources, ...frameSources.map((frameSource) => makeStoredFrame(frameSource, orientation))]
    : frameSources

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

/** The decoder holds all rows until the last of seven passes. */
function checkInterlaced({ width, height, metadata }: Header, { maxHeldBytes }: Limits) {
  const channelBytes = metadata.depth === 'ushort' ? 2 : 1
  const heldBytes = width * height * metadata.channels * channelBytes
  if (metadata.isProgressive && heldBytes > maxHeldBytes) throw newOverLimit(`${width} x ${height} pixels interlaced`)
}

/**
 * The width and height that a frame counts for at least: decoding a row of a WebP takes 4.3 µs however short it is, as
 * long as 100 to 200 pixels, and WebP compresses blocks of 16 rows.
 */
const minFrame = { width: 200, height: 16 }

function checkAnimation({ width, height }: Header, { frames, framesPerPass, heldBytes }: FrameSource, limits: Limits) {
  if (frames > limits.maxFrames) throw newOverLimit(`${frames} frames`)
  // Each pass decodes all frames before its own again.
  const passes = (Math.ceil(frames / framesPerPass) + 1) / 2
  const framePixels = Math.max(width, minFrame.width) * Math.max(height, minFrame.height)
  if (heldBytes > limits.maxHeldBytes || framePixels * frames * passes > limits.maxAnimationPixels) {
    throw newOverLimit(`${frames} frames of ${width} x ${height} pixels`)
  }
}

const loaders = [
  'VipsForeignLoadJpegBuffer',
  'VipsForeignLoadPngBuffer',
  'VipsForeignLoadWebpBuffer',
  'VipsForeignLoadNsgifBuffer',
]

let areLoadersSet = false

/**
 * Lets libvips read four formats in this process; its own list of untrusted loaders leaves TIFF and AVIF enabled. One
 * thread, because a process decodes one picture at a time; no cache, because no operation repeats.
 */
function allowFourLoaders() {
  // A second call would block the loaders for a moment while a picture is being decoded.
  if (areLoadersSet) return
  areLoadersSet = true
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({ operation: loaders })
  sharp.cache(false)
  sharp.concurrency(1)
}
