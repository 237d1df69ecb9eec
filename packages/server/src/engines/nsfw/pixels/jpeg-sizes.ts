import type { Shape } from '../models/model.ts'
import { flatten } from './backgrounds.ts'
import { fingerprintShape, makeSeenViews, toFingerprint } from './fingerprints.ts'
import { type FrameSource, makeStillFrame, type Size } from './frame-sources.ts'
import { type Detail, render, renderDetail, type Source } from './render.ts'

/**
 * A JPEG holds frequencies of blocks, and a decoder that makes it smaller leaves out some of them. It cuts values
 * beyond black and white only afterwards, so that pixels far beyond white raise the mean that a small decoding shows,
 * and not the one that a whole decoding shows: one file shows two pictures.
 */
type Options = {
  bytes: Buffer
  size: Size
  ignoreIcc: boolean
  /** A usual profile changes little, and applying it to all pixels takes longer than decoding them. */
  hasOddProfile: boolean
  allSizes: boolean
  /** The shape of the first model, which decides at which size the still picture is decoded. */
  firstShape: Shape
}

/** The parts of its size at which libjpeg decodes a JPEG without computing all pixels. */
const divisors = [8, 4, 2]
/** libvips takes the next divisor for the next integral factor only, because of rounding. */
const toFactor = (divisor: number) => divisor + 1
/** Smaller pictures are blurred so much that they differ from the whole one in any case, and show little. */
const minSide = fingerprintShape.side

/** The divisor at which libvips decodes a JPEG for a square of the given side; 1 for all pixels. */
const findDivisor = ({ width, height }: Size, side: number) =>
  divisors.find((divisor) => Math.min(width, height) / side >= toFactor(divisor)) ?? 1

const toLeading = (shape: Shape) => (shape.side < minSide ? fingerprintShape : shape)

/**
 * The other sizes at which programs decode a JPEG: the whole one, which people see, or an eighth, as for thumbnails, if
 * the still picture is the whole one; with `allSizes` all of them. They are compared with the still picture at a low
 * resolution, and classified when they differ from it.
 */
export function findOtherSizes(options: Options): FrameSource[] {
  const { bytes, size, ignoreIcc, hasOddProfile, allSizes, firstShape } = options
  const least = Math.min(size.width, size.height)
  const isShrunk = findDivisor(size, toLeading(firstShape).side) > 1
  const smaller = (isShrunk && !allSizes ? [] : allSizes ? divisors : divisors.slice(0, 1))
    .filter((divisor) => least / toFactor(divisor) >= minSide)
    .map((divisor) => makeShrunkFrame({ bytes, options: { ignoreIcc } }, size, divisor))
  if (!isShrunk && !allSizes) return smaller
  const inFull = { isPng: false, both: false, ignoreIcc: ignoreIcc || !hasOddProfile, inFull: true }
  const whole = makeStillFrame(bytes, size, inFull)
  return [{ ...whole, isTiny: true }, ...smaller]
}

/**
 * A JPEG of which all shapes show the decoding that the first model gets. Otherwise two models would look at two
 * pictures, of which the mean says nothing. Each shape is decoded at the size that suits it as long as it looks the
 * same.
 */
export function makeSteadyJpeg({ bytes, size, ignoreIcc, firstShape }: Options): FrameSource {
  const still = makeStillFrame(bytes, size, { isPng: false, both: false, ignoreIcc })
  const leading = toLeading(firstShape)
  const divisor = findDivisor(size, leading.side)
  const steady =
    divisor > 1
      ? makeShrunkFrame({ bytes, options: { ignoreIcc } }, size, divisor)
      : makeStillFrame(bytes, size, { isPng: false, both: false, ignoreIcc, inFull: true })

  const looksSame = async (detail: Detail) => {
    const [raster] = await still.read(0, 1, leading)
    if (raster === undefined) return false
    const seen = makeSeenViews()
    seen.add(await readFingerprint({ ...raster, width: leading.side, height: leading.side }))
    return !seen.add(await readFingerprint(detail))
  }
  return {
    ...still,
    async read(first, count, shape) {
      const rasters = await still.read(first, count, shape)
      const [raster] = rasters
      if (raster === undefined || findDivisor(size, shape.side) === divisor) return rasters
      const isSame = await looksSame({ ...raster, width: shape.side, height: shape.side })
      return isSame ? rasters : steady.read(first, count, shape)
    },
    readDetail:
      still.readDetail &&
      (async () => {
        const detail = await still.readDetail?.()
        if (detail !== undefined && (await looksSame(detail))) return detail
        return (await steady.readDetail?.()) as Detail
      }),
  }
}

async function readFingerprint(detail: Detail) {
  return toFingerprint(flatten(await renderAgain(detail, fingerprintShape), 'white'))
}

const renderAgain = ({ data, width, height, channels }: Detail, shape: Shape) =>
  render({ bytes: data, options: { raw: { width, height, channels }, autoOrient: false } }, shape)

function makeShrunkFrame(source: Source, size: Size, divisor: number): FrameSource {
  const [width, height] = [size.width, size.height].map((side) => Math.floor(side / toFactor(divisor))) as [
    number,
    number,
  ]
  let decoded: Promise<Detail> | undefined
  const readDetail = () => {
    decoded ??= renderDetail(source, width, height)
    return decoded
  }
  return {
    frames: 1,
    framesPerPass: 1,
    heldBytes: 0,
    size,
    isTiny: true,
    read: async (_first, _count, shape) => [await renderAgain(await readDetail(), shape)],
    readDetail,
  }
}
