import { smallShape } from '../models/model.ts'
import { fingerprintShape } from './fingerprints.ts'
import { type FrameSource, makeStillFrame, type Size } from './frame-sources.ts'
import { type Detail, render, renderDetail } from './render.ts'

/**
 * A JPEG holds frequencies of blocks, and a decoder that makes it smaller leaves out some of them. It cuts values beyond
 * black and white only afterwards, so that pixels far beyond white raise the mean that a small decoding shows, and not
 * the one that a whole decoding shows: one file shows two pictures.
 */
type Options = { bytes: Buffer; size: Size; ignoreIcc: boolean; allSizes: boolean }

/** The parts of its size at which libjpeg decodes a JPEG without computing all pixels. */
const divisors = [8, 4, 2]
/** libvips takes the next divisor for the next integral factor only, because of rounding. */
const toFactor = (divisor: number) => divisor + 1
/** Smaller pictures are blurred so much that they differ from the whole one in any case, and show little. */
const minSide = fingerprintShape.side

/**
 * The other sizes at which programs decode a JPEG: the whole one, which people see, and an eighth, as for thumbnails;
 * with `allSizes` those between, too. They are compared with the still picture at a low resolution, and classified when
 * they differ from it.
 */
export function findOtherSizes({ bytes, size, ignoreIcc, allSizes }: Options): FrameSource[] {
  const least = Math.min(size.width, size.height)
  const isShrunk = least / smallShape.side >= toFactor(2)
  const smaller = (isShrunk && !allSizes ? [] : allSizes ? divisors : divisors.slice(0, 1))
    .filter((divisor) => least / toFactor(divisor) >= minSide)
    .map((divisor) => makeShrunkFrame(bytes, size, divisor))
  if (!isShrunk && !allSizes) return smaller
  const whole = makeStillFrame(bytes, size, { isPng: false, both: false, ignoreIcc, inFull: true })
  return [{ ...whole, isTiny: true }, ...smaller]
}

function makeShrunkFrame(bytes: Buffer, size: Size, divisor: number): FrameSource {
  const [width, height] = [size.width, size.height].map((side) => Math.floor(side / toFactor(divisor))) as [
    number,
    number,
  ]
  let decoded: Promise<Detail> | undefined
  const readDetail = () => {
    decoded ??= renderDetail({ bytes }, width, height)
    return decoded
  }
  return {
    frames: 1,
    framesPerPass: 1,
    heldBytes: 0,
    size,
    isTiny: true,
    async read(_first, _count, shape) {
      const { data, channels } = await readDetail()
      return [await render({ bytes: data, options: { raw: { width, height, channels }, autoOrient: false } }, shape)]
    },
    readDetail,
  }
}
