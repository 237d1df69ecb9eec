import { type Panel, splitCollage } from './collages.ts'
import { findInsets, nearlyCoincide } from './insets.ts'
import { type Cells, getArea, trim } from './lines.ts'

/** A part of a picture; all values are shares of the picture's width and height, from 0 to 1. */
export type Box = { left: number; top: number; width: number; height: number }

type Size = { width: number; height: number }

const whole: Box = { left: 0, top: 0, width: 1, height: 1 }

/** A trimmed picture is one of its own when the border took at least this share of its area. */
const minBorderShare = 0.08
/** The least share of each side that a part has. */
const minPart = 0.05
/** From this ratio of its sides on, a picture is classified in tiles. */
const stripRatio = 2
/** Pictures with a shorter side are lines. */
const minStripPixels = 32
/** Strips of up to so many squares are tiled with half of each tile in the next. */
const maxOverlappedRatio = 10

/**
 * Finds the parts of a picture that are pictures of their own: the content within a border of one colour, the panels of
 * a collage, pictures that are placed on it, and the tiles of a strip. `pixels` is the picture squashed into an RGB
 * square.
 */
export function findRegions(pixels: Buffer, size: Size): Box[] {
  const side = Math.sqrt(pixels.length / 3)
  const square = { grey: toGrey(pixels), side }
  const content = trim(square, { left: 0, top: 0, right: side, bottom: side })
  if (content === undefined) return []
  const isTrimmed = getArea(content) < (1 - minBorderShare) * side * side
  const panels = splitCollage(square, content)
  const isSplit = panels.length > 0
  const parts: Panel[] = isTrimmed ? [{ cells: content, isSplit }, ...panels] : panels
  const boxes = parts
    .map(({ cells, isSplit }) => ({ box: toBox(cells, side), isSplit }))
    .filter(({ box }) => Math.min(box.width, box.height) >= minPart)
  // The panels of a row of panels take the place of its tiles.
  const undivided = boxes.filter(({ isSplit }) => !isSplit).map(({ box }) => box)
  const tiles = undivided
    .flatMap((box) => tileStrip(box, size, 1))
    .filter(({ width, height }) => width * height >= minTile)
  const insets = findInsets(square, content)
    .filter((inset) => !parts.some(({ cells }) => nearlyCoincide(cells, inset)))
    .map((cells) => toBox(cells, side))
  return [...chooseLargest([...boxes.map(({ box }) => box), ...tiles, ...insets]), ...tileStrip(whole, size)]
}

/** The share of the picture's area that a tile of one of its panels has: smaller panels are not looked for either. */
const minTile = 0.04

/** Enough for the panels, rows and border of a collage of four by four; pages of text and diagrams have hundreds. */
const maxPanels = 40

function chooseLargest(boxes: Box[]): Box[] {
  if (boxes.length <= maxPanels) return boxes
  return boxes.toSorted((a, b) => b.width * b.height - a.width * a.height).slice(0, maxPanels)
}

/** Nine tiles of half the width and height, half over each other, for pictures that are larger than what a model sees. */
export function findTiles({ width, height }: Size, side: number): Box[] {
  if (Math.min(width, height) < side * 2) return []
  const starts = [0, 0.25, 0.5]
  return starts.flatMap((top) => starts.map((left) => ({ left, top, width: 0.5, height: 0.5 })))
}

/** Cuts a strip into squares. Those of a whole picture lie half over each other, those of its parts side by side. */
function tileStrip(box: Box, size: Size, maxOverlapped = maxOverlappedRatio): Box[] {
  const [width, height] = [box.width * size.width, box.height * size.height]
  const ratio = Math.max(width, height) / Math.min(width, height)
  if (ratio <= stripRatio || Math.min(width, height) < minStripPixels) return []
  const count = ratio <= maxOverlapped ? Math.ceil(ratio * 2) - 1 : Math.ceil(ratio)
  const share = 1 / ratio
  return Array.from({ length: count }, (_, i) => {
    const start = (i / (count - 1)) * (1 - share)
    return width > height
      ? { ...box, left: box.left + start * box.width, width: share * box.width }
      : { ...box, top: box.top + start * box.height, height: share * box.height }
  })
}

/** Makes a box one cell smaller on each inner side, because a border or gutter may be mixed with the content there. */
function toBox({ left, top, right, bottom }: Cells, side: number): Box {
  const inset = 1
  return {
    left: (left === 0 ? 0 : left + inset) / side,
    top: (top === 0 ? 0 : top + inset) / side,
    width: ((right === side ? side : right - inset) - (left === 0 ? 0 : left + inset)) / side,
    height: ((bottom === side ? side : bottom - inset) - (top === 0 ? 0 : top + inset)) / side,
  }
}

/** Reduces each pixel to one value, with other weights than the eye: no two common colours become the same. */
function toGrey(pixels: Buffer): Uint8Array {
  const grey = new Uint8Array(pixels.length / 3)
  for (let to = 0, from = 0; to < grey.length; to++, from += 3) {
    grey[to] =
      ((pixels[from] as number) * 77 + (pixels[from + 1] as number) * 128 + (pixels[from + 2] as number) * 51) >> 8
  }
  return grey
}
