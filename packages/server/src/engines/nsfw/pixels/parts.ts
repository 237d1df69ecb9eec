import type { Shape } from '../models/model.ts'
import { sharp } from '../sharp.ts'
import { type Background, flatten } from './backgrounds.ts'
import { type Box, findRegions, findTiles } from './regions.ts'
import { type Detail, refuseErrors } from './render.ts'
import { turnBack } from './turned.ts'
import type { PartOptions, Pass, View } from './views.ts'

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
export async function readParts(view: Whole, { isCloser, hasTilesBesideParts }: PartOptions): Promise<Pass> {
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
