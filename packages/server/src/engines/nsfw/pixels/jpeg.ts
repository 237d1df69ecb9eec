import { smallShape } from '../models/model.ts'
import { type Fingerprint, fingerprintShape, makeSeenViews, toFingerprint } from './fingerprints.ts'
import { type FrameSource, makeStillFrame, once, type Size, singleFrame } from './frame-sources.ts'
import { flatten } from './lines.ts'
import { newUnsupported, type Raster, render, renderAgain, renderDetail, type Source } from './render.ts'

type JpegOptions = {
  bytes: Buffer
  size: Size
  /** Both shapes will be used. */
  both: boolean
  /** Looks at every size, also when the smallest one looks like the whole picture. */
  allSizes: boolean
  profile: Buffer | undefined
  /** A usual profile changes little: it is applied to the small picture, because all pixels would take longer. */
  hasOddProfile: boolean
  ignoreIcc: boolean
}

/** The parts of its size at which libjpeg decodes a JPEG without computing all pixels, as far as libvips asks for them. */
const divisors = [8, 4, 2]
/** libvips takes the next divisor for the next integral factor only, because of rounding. */
const toFactor = (divisor: number) => divisor + 1
/** Smaller pictures are blurred so much that they differ from the whole one in any case, and show little. */
const minSide = fingerprintShape.side

/**
 * A JPEG holds frequencies of blocks, and a decoder that makes it smaller leaves out some of them. It cuts values
 * beyond black and white only afterwards, so that pixels far beyond white raise the mean that a small decoding shows,
 * and not the one that a whole decoding shows: one file shows two pictures.
 *
 * Finds the sizes at which programs decode a JPEG: the whole one, which people see and all models get, and the smallest one,
 * which shows the means of all blocks before they are cut. When it differs visibly from the whole one, or with
 * `allSizes`, the sizes between are looked at too, because they show a mixture of both. The refusal, to be read last,
 * throws when the sizes show several pictures.
 */
export function findJpegSizes(options: JpegOptions): { shown: FrameSource[]; refusal: FrameSource } {
  const { bytes, size, both, allSizes, profile, hasOddProfile, ignoreIcc } = options
  const isLate = !ignoreIcc && !hasOddProfile
  const whole = makeStillFrame(bytes, size, {
    isPng: false,
    both,
    ignoreIcc: ignoreIcc || isLate,
    lateProfile: isLate ? profile : undefined,
    inFull: true,
  })
  const smaller = divisors.filter((divisor) => Math.min(size.width, size.height) / toFactor(divisor) >= minSide)
  let isSteered = false
  const others = smaller.map((divisor, i): FrameSource => {
    const frameSource = makeShrunkFrame({ bytes, options: { ignoreIcc } }, size, divisor)
    const showsOther = once(() => showsOtherPicture(bytes, size, divisor))
    return {
      ...frameSource,
      get frames() {
        return i === 0 || allSizes || isSteered ? 1 : 0
      },
      async read(first, count, shape) {
        const mayDiffer = areDifferent(
          await whole.read(0, 1, smallShape),
          await frameSource.read(0, 1, fingerprintShape),
        )
        if (!mayDiffer || !(await showsOther())) return []
        isSteered = true
        return frameSource.read(first, count, shape)
      },
    }
  })
  const refusal: FrameSource = {
    ...whole,
    get frames() {
      return isSteered ? 1 : 0
    },
    read: async () => {
      // Damaged data shows something else at every size, so a damaged JPEG is only looked at.
      const strict = { bytes, options: { ignoreIcc: true, failOn: 'warning' as const }, inFull: size }
      const isDamaged = await render(strict, fingerprintShape).then(
        () => false,
        () => true,
      )
      if (isDamaged) return []
      throw newUnsupported('a JPEG that shows other pictures at other sizes')
    },
  }
  return { shown: [whole, ...others], refusal }
}

/**
 * Whether a size shows another picture than the whole one, and not only fewer details: the whole picture is made as
 * small after it was decoded. No program writes such a JPEG by itself, so it is never clean.
 */
async function showsOtherPicture(bytes: Buffer, size: Size, divisor: number): Promise<boolean> {
  const { width, height } = toShrunk(size, divisor)
  const options = { ignoreIcc: true }
  const inFull = await renderDetail({ bytes, options, inFull: size }, width, height)
  const shrunk = await renderDetail({ bytes, options }, width, height)
  return areDifferent([await renderAgain(inFull, fingerprintShape)], [await renderAgain(shrunk, fingerprintShape)])
}

function areDifferent([a]: Raster[], [b]: Raster[]): boolean {
  if (a === undefined || b === undefined) return true
  const seen = makeSeenViews()
  seen.add(soften(toFingerprint(flatten(a, 'white'))))
  return seen.add(soften(toFingerprint(flatten(b, 'white'))))
}

const toShrunk = ({ width, height }: Size, divisor: number): Size => ({
  width: Math.floor(width / toFactor(divisor)),
  height: Math.floor(height / toFactor(divisor)),
})

/** A smaller size lacks details, so blocks of four cells are compared. */
function soften(fingerprint: Fingerprint): Fingerprint {
  const row = minSide * 3
  const soft = new Uint8Array(fingerprint.length)
  for (let y = 0; y < minSide; y += 2) {
    for (let x = 0; x < row; x++) {
      const at = y * row + x - (x % 6 < 3 ? 0 : 3)
      const above = (fingerprint[at] ?? 0) + (fingerprint[at + 3] ?? 0)
      const mean = (above + (fingerprint[at + row] ?? 0) + (fingerprint[at + row + 3] ?? 0)) / 4
      soft[y * row + x] = mean
      soft[(y + 1) * row + x] = mean
    }
  }
  return soft
}

/** Shapes are rendered from one decoding; the fingerprint of the smallest one is decoded as it is. */
function makeShrunkFrame(source: Source, size: Size, divisor: number): FrameSource {
  const { width, height } = toShrunk(size, divisor)
  const readDetail = once(() => renderDetail(source, width, height))
  const readFingerprint = once(async () =>
    divisor === divisors[0] ? render(source, fingerprintShape) : renderAgain(await readDetail(), fingerprintShape),
  )
  return {
    ...singleFrame,
    size,
    isTiny: true,
    async read(_first, _count, shape) {
      return [await (shape === fingerprintShape ? readFingerprint() : renderAgain(await readDetail(), shape))]
    },
    readDetail,
  }
}

type JpegScans = {
  scans: number
  /** Memory that a decoder holds until the last of several scans; 0 when it gives rows as it reads them. */
  heldBytes: number
}

/**
 * Counts the scans of a JPEG by its markers, without decoding. A progressive JPEG of 240 KB may hold 2,000 scans, each of
 * which visits the whole picture: decoding took 34 s, and libvips has no timeout for it.
 */
export function readJpegScans(bytes: Buffer): JpegScans {
  let scans = 0
  let coefficients = 0
  let isProgressive = false
  let at = 2
  while (at < bytes.length) {
    at = bytes.indexOf(0xff, at)
    if (at < 0) break
    while (bytes[at] === 0xff) at++
    const marker = bytes[at++] ?? endOfImage
    if (marker === endOfImage) break
    if (marker === 0 || marker === 1 || (marker >= 0xd0 && marker <= 0xd8)) continue
    if (at + 2 > bytes.length) break
    const length = bytes.readUInt16BE(at)
    if (isFrameHeader(marker)) {
      isProgressive = marker === 0xc2 || marker === 0xca
      coefficients = countCoefficients(bytes.subarray(at, at + length))
    }
    if (marker === startOfScan) scans++
    at += Math.max(length, 2)
  }
  return { scans, heldBytes: isProgressive || scans > 1 ? coefficients * 2 : 0 }
}

const endOfImage = 0xd9
const startOfScan = 0xda

const isFrameHeader = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

function countCoefficients(header: Buffer): number {
  if (header.length < 8) return 0
  const pixels = header.readUInt16BE(3) * header.readUInt16BE(5)
  const samplings: [across: number, down: number][] = []
  for (let i = 0; i < (header[7] ?? 0); i++) {
    const sampling = header[8 + i * 3 + 1] ?? 0x11
    samplings.push([sampling >> 4, sampling & 15])
  }
  const most = Math.max(1, ...samplings.map(([across]) => across)) * Math.max(1, ...samplings.map(([, down]) => down))
  return samplings.reduce((sum, [across, down]) => sum + (pixels * across * down) / most, 0)
}
