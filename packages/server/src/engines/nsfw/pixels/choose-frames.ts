import { chooseApart, type Thumbnail, toThumbnail } from './choose-apart.ts'
import { type Background, findBackgrounds, flatten } from './flatten.ts'
import type { FrameSource } from './frame-source.ts'
import { largeShape, smallShape } from './render.ts'

/** A frame as a viewer may show it. One that is transparent may be there twice, on white and on black. */
export type Frame = {
  /** Counts all frames of the picture from 0. */
  index: number
  background: Background
  /** RGB, 8 bits, 224 x 224, antialiased bilinear. */
  small: Buffer
  /** RGB, 8 bits, 299 x 299, lanczos3. Decodes again, once for all frames that lie near each other. */
  large(): Promise<Buffer>
}

type Candidate = Frame & { thumbnail: Thumbnail }

/**
 * Two reels of the same frames are two ways to show them. Of each pass only the chosen frames are kept; the last choice
 * among those is nearly as good as one among all, and what is unlike everything else outlives both.
 */
export async function chooseFrames(frameSources: FrameSource[], most: number): Promise<Frame[]> {
  const kept: Candidate[] = []
  for (const frameSource of frameSources) {
    for (let first = 0; first < frameSource.frames; first += frameSource.framesPerPass) {
      kept.push(...(await choosePass(frameSource, first, most)))
    }
  }
  return chooseApart(kept, most)
    .sort((a, b) => a.index - b.index)
    .map(({ thumbnail: _, ...frame }) => frame)
}

async function choosePass(frameSource: FrameSource, first: number, most: number): Promise<Candidate[]> {
  const rasters = await frameSource.read(
    first,
    Math.min(frameSource.framesPerPass, frameSource.frames - first),
    smallShape,
  )
  const looks = rasters.flatMap((raster, i) =>
    findBackgrounds(raster).map((background) => {
      const thumbnail = toThumbnail(flatten(raster, background), smallShape.side)
      return { index: first + i, background, raster, thumbnail }
    }),
  )
  const chosen = chooseApart(looks, most)
  const readLarge = makeLargeReader(
    frameSource,
    chosen.map(({ index }) => index),
  )
  return chosen.map(({ index, background, raster, thumbnail }) => ({
    index,
    background,
    thumbnail,
    small: flatten(raster, background),
    large: () => readLarge(index, background),
  }))
}

/** One pass serves all of them, because whoever asks for one frame often asks for its neighbours. */
function makeLargeReader(frameSource: FrameSource, indexes: number[]) {
  const first = Math.min(...indexes)
  const count = Math.max(...indexes) - first + 1
  let reading: Promise<Map<string, Buffer>> | undefined

  const read = async () => {
    const rasters = await frameSource.read(first, count, largeShape)
    const wanted = new Set(indexes)
    const flats = new Map<string, Buffer>()
    for (const [i, raster] of rasters.entries()) {
      if (!wanted.has(first + i)) continue
      for (const background of ['white', 'black'] as const) {
        flats.set(`${first + i} ${background}`, flatten(raster, background))
      }
    }
    return flats
  }

  return async (index: number, background: Background): Promise<Buffer> => {
    reading ??= read()
    const found = (await reading).get(`${index} ${background}`)
    if (found === undefined) throw new Error(`Frame ${index} was not read`)
    return found
  }
}
