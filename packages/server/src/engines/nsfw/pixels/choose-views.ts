import { type Shape, smallShape } from '../models/model.ts'
import { sharp } from '../sharp.ts'
import { fingerprintShape, type SeenViews, toFingerprint } from './fingerprints.ts'
import type { FrameSource } from './frame-sources.ts'
import { type Background, findBackgrounds, flatten } from './lines.ts'
import { type Box, findRegions, findTiles } from './regions.ts'
import { type Detail, type Raster, refuseErrors } from './render.ts'
import { turnBack } from './viewer-frames.ts'

/** A view of a frame, as a viewer may show it. A transparent frame has several, such as on white and on black. */
export type View = {
  /** The frame's number in the picture, from 0. */
  index: number
  background: Background
  /** RGB, 8 bits, in the shape of a model. Any but the small one decodes again, unless it was prepared. */
  render(shape: Shape): Promise<Buffer>
  /** Parts of the view that may be pictures of their own. */
  readParts(options: PartOptions): Promise<Pass>
}

/** The views that one pass through the decoder gives. */
export type Pass = {
  views: View[]
  /** Decodes several views in a shape at once: one after the other, each would decode all frames before it. */
  prepare(views: View[], shape: Shape): Promise<void>
}

type PartOptions = {
  /** Adds the view turned to each side, and tiles of a picture that is larger than what the models see. */
  isCloser: boolean
  /** Adds those tiles also when the view has other parts. */
  hasTilesBesideParts: boolean
}

/** Yields every view of the frames that differs visibly from all views that were yielded before. */
export async function* chooseViews(frameSource: FrameSource, seen: SeenViews): AsyncGenerator<Pass> {
  for (let first = 0; first < frameSource.frames; first += frameSource.framesPerPass) {
    yield await choosePass(frameSource, first, seen)
  }
}

async function choosePass(frameSource: FrameSource, first: number, seen: SeenViews): Promise<Pass> {
  const chosen = await chooseSmalls(frameSource, first, seen)
  let prepared: { shape: Shape; rasters: Map<number, Raster> } | undefined
  const views = chosen.map(({ index, background, small }): View => {
    const render = async (shape: Shape) => {
      if (isSameShape(shape, smallShape)) return small
      const isPrepared = prepared !== undefined && isSameShape(shape, prepared.shape)
      const found = isPrepared ? prepared?.rasters.get(index) : undefined
      return flatten(found ?? getRaster(await readFrames(frameSource, [index], shape), index), background)
    }
    const { size, readDetail } = frameSource
    const whole = { index, background, small, render, size, readDetail }
    return { index, background, render, readParts: (options) => readParts(whole, options) }
  })
  const prepare = async (wanted: View[], shape: Shape) => {
    if (wanted.length === 0 || isSameShape(shape, smallShape)) return
    const rasters = await readFrames(
      frameSource,
      wanted.map(({ index }) => index),
      shape,
    )
    prepared = { shape, rasters }
  }
  return { views, prepare }
}

type Chosen = { index: number; background: Background; small: Buffer }

/** Chooses views of the frames from `first` on, and reads them in the small shape. */
async function chooseSmalls(frameSource: FrameSource, first: number, seen: SeenViews): Promise<Chosen[]> {
  const count = Math.min(frameSource.framesPerPass, frameSource.frames - first)
  const opaque = await frameSource.readOpaque?.()
  if (opaque !== undefined) {
    const fingerprints = opaque.fingerprints.slice(first, first + count)
    const indexes = fingerprints.flatMap((fingerprint, i) => (seen.add(fingerprint) ? [first + i] : []))
    const rasters = await opaque.read(indexes, smallShape)
    return rasters.map(({ data }, i) => ({ index: indexes[i] as number, background: 'white', small: data }))
  }
  const shape = frameSource.isTiny ? fingerprintShape : smallShape
  const rasters = await frameSource.read(first, count, shape)
  const chosen = rasters.flatMap((raster, i) =>
    findBackgrounds(raster)
      .map((background) => ({ index: first + i, background, small: flatten(raster, background) }))
      .filter(({ small }) => seen.add(toFingerprint(small))),
  )
  if (shape === smallShape) return chosen
  const indexes = chosen.map(({ index }) => index)
  const smalls = await readFrames(frameSource, indexes, smallShape)
  return chosen.map(({ index, background }) => ({
    index,
    background,
    small: flatten(getRaster(smalls, index), background),
  }))
}

const isSameShape = (a: Shape, b: Shape) => a.side === b.side && a.kernel === b.kernel

async function readFrames(frameSource: FrameSource, indexes: number[], shape: Shape): Promise<Map<number, Raster>> {
  const found = new Map<number, Raster>()
  const first = Math.min(...indexes)
  if (indexes.length === 0) return found
  const opaque = await frameSource.readOpaque?.()
  if (opaque !== undefined) {
    const rasters = await opaque.read(indexes, shape)
    return new Map(rasters.map((raster, i) => [indexes[i] as number, raster]))
  }
  const rasters = await frameSource.read(first, Math.max(...indexes) - first + 1, shape)
  // Copies, so that the memory of frames that are not wanted becomes free.
  for (const index of new Set(indexes)) {
    const raster = rasters[index - first]
    if (raster !== undefined) found.set(index, { ...raster, data: Buffer.from(raster.data) })
  }
  return found
}

function getRaster(rasters: Map<number, Raster>, index: number): Raster {
  const raster = rasters.get(index)
  if (raster === undefined) throw new Error(`Frame ${index} was not read`)
  return raster
}

type Flat = { width: number; height: number; data: Buffer }

type Whole = {
  index: number
  background: Background
  small: Buffer
  render: View['render']
  /** The frame's own size, of which the small square is a squashed copy. */
  size: { width: number; height: number }
  /** Decodes the frame larger. Frames of animations have none: their parts are cut from the small square. */
  readDetail: (() => Promise<Detail>) | undefined
}

/** The parts of a view that are classified on their own. They are decoded only when there are any. */
async function readParts(view: Whole, { isCloser, hasTilesBesideParts }: PartOptions): Promise<Pass> {
  const { small, size, readDetail } = view
  const side = Math.sqrt(small.length / 3)
  const regions = findRegions(small, size)
  const hasTiles = isCloser && (hasTilesBesideParts || regions.length === 0)
  const boxes = hasTiles ? [...regions, ...findTiles(size, side)] : regions
  const turned = isCloser ? orientations.map((orientation) => makeTurned(view, orientation)) : []
  if (boxes.length === 0) return { ...noParts, views: turned }
  const flat =
    readDetail === undefined
      ? { width: side, height: side, data: small }
      : await readDetail().then((detail) => toFlat(detail, view.background))
  return { ...noParts, views: [...boxes.map((box) => makePart(view, flat, box)), ...turned] }
}

/** A detail without transparency stays in its memory of up to 6 MB. */
const toFlat = (detail: Detail, background: Background): Flat =>
  detail.channels === 3 ? detail : { ...detail, data: flatten(detail, background) }

/** The orientations that turn a picture to the left, upside down and to the right. */
const orientations = [6, 3, 8]

const makeTurned = ({ index, background, render }: Whole, orientation: number): View => ({
  index,
  background,
  async render(shape) {
    const data = await render(shape)
    return turnBack({ data, channels: 3 }, shape.side, orientation).data
  },
  readParts: async () => noParts,
})

const noParts: Pass = { views: [], prepare: async () => {} }

function makePart({ index, background }: Whole, { width, height, data }: Flat, box: Box): View {
  const left = Math.min(width - 1, Math.round(box.left * width))
  const top = Math.min(height - 1, Math.round(box.top * height))
  const area = {
    left,
    top,
    width: Math.max(1, Math.min(width - left, Math.round(box.width * width))),
    height: Math.max(1, Math.min(height - top, Math.round(box.height * height))),
  }
  const render = ({ side, kernel }: Shape) =>
    refuseErrors(() =>
      sharp(data, { raw: { width, height, channels: 3 } })
        .extract(area)
        .resize(side, side, { fit: 'fill', kernel })
        .raw()
        .toBuffer(),
    )
  return { index, background, render, readParts: async () => noParts }
}
