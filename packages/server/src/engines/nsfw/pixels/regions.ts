import { type Panel, splitCollage } from './collages.ts'
import type { Size } from './frame-sources.ts'
import { type Axis, type Cells, getArea, type Square, trim } from './lines.ts'

/** A part of a picture; all values are shares of the picture's width and height, from 0 to 1. */
export type Box = { left: number; top: number; width: number; height: number }

const whole: Box = { left: 0, top: 0, width: 1, height: 1 }

/** A part that leaves a smaller share of the area around it is nearly the whole picture. */
const minSurround = 0.08
/** The least share of each side that a part has. */
const minPart = 0.05
/** The share of the picture's area that a tile of one of its panels has: smaller panels are not looked for either. */
const minTile = 0.04
/** From this ratio of its sides on, a picture is classified in tiles. */
const stripRatio = 2
/** Pictures with a shorter side are lines. */
const minStripPixels = 32
/** Strips of up to so many squares are tiled with half of each tile in the next. */
const maxOverlappedRatio = 10

/** Enough for the panels, rows and border of a collage of four by four; pages of text and diagrams have hundreds. */
const maxPanels = 40

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
  const isTrimmed = getArea(content) < (1 - minSurround) * side * side
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

/** An inset takes at least this share of each side of the picture. */
const minInsetShare = 0.2
/** Difference of the cells on both sides of an edge. */
const edgeStep = 8
/** The difference along an edge, as a multiple of that on one side of it at least: texture has no edges. */
const overNearby = 4
/** Distance in cells of the lines on both sides that an edge is compared with. */
const nearby = 4
/** Lines over which an edge is spread. */
const edgeWidth = 2
/** Greater differences make an edge no stronger. */
const maxStrength = 60
/** Strongest edges of each axis that are tried as sides of an inset. */
const maxEdges = 12
/** Part of each side, and of all sides, along which cells change: the surroundings may have the colours of the inset. */
const leastCovered = { side: 0.5, all: 0.7 }
const maxInsets = 4
/** Share of the area of two rectangles together from which on they are nearly the same. */
const coinciding = 0.8

/** A side of a rectangle: a line along which cells change at once, or an end of the picture. */
type Side = {
  at: number
  /** The number of cells with a step before each cell of the line; undefined for an end. */
  steps: Uint16Array | undefined
}

type Inset = { cells: Cells; coverage: number }

/**
 * Finds pictures that are placed on another one, on a pattern or on a gradient: rectangles whose sides are straight edges,
 * or ends of the picture, as in a corner. Panels that reach from end to end are those of a collage.
 */
function findInsets(square: Square, cells: Cells): Cells[] {
  const least = Math.round(square.side * minInsetShare)
  const rows = listPairs(findSides(square, cells, 'rows'), least)
  const columns = listPairs(findSides(square, cells, 'columns'), least)
  const maxArea = getArea(cells) * (1 - minSurround)
  const insets: Inset[] = []
  for (const [top, bottom] of rows) {
    for (const [left, right] of columns) {
      if ((bottom.at - top.at) * (right.at - left.at) > maxArea) continue
      const coverage = measureCoverage(top, bottom, left, right)
      if (coverage > 0) insets.push({ cells: toCells(cells, top, bottom, left, right), coverage })
    }
  }
  return chooseClearest(insets)
}

const toCells = ({ left: x, top: y }: Cells, top: Side, bottom: Side, left: Side, right: Side): Cells => ({
  left: x + left.at,
  top: y + top.at,
  right: x + right.at,
  bottom: y + bottom.at,
})

/** Pairs of sides with room for an inset, one of which at least is an edge. */
const listPairs = (sides: Side[], least: number): [Side, Side][] =>
  sides.flatMap((first, i) =>
    sides
      .slice(i + 1)
      .filter((last) => last.at - first.at >= least && (first.steps ?? last.steps) !== undefined)
      .map((last): [Side, Side] => [first, last]),
  )

/** The mean part of the four sides along which cells change; 0 when it is too little. */
function measureCoverage(top: Side, bottom: Side, left: Side, right: Side): number {
  const above = measureSide(top, left.at, right.at)
  const below = measureSide(bottom, left.at, right.at)
  const before = measureSide(left, top.at, bottom.at)
  const behind = measureSide(right, top.at, bottom.at)
  const mean = (above + below + before + behind) / 4
  return mean >= leastCovered.all && Math.min(above, below, before, behind) >= leastCovered.side ? mean : 0
}

/** An end of the picture counts as a side that is just clear enough. */
const measureSide = ({ steps }: Side, from: number, to: number): number =>
  steps === undefined ? leastCovered.all : ((steps[to] as number) - (steps[from] as number)) / (to - from)

/** The ends of an axis and the strongest edges across it, in order. Each edge is at the line where it is clearest. */
function findSides(square: Square, cells: Cells, axis: Axis): Side[] {
  const lines = readDifferences(square, cells, axis)
  const { length } = lines
  const least = square.side * minInsetShare * leastCovered.side
  const edges: { at: number; strength: number }[] = []
  for (let at = nearby; at < length - nearby; at++) {
    let [strength, count] = [0, 0]
    for (let i = 0; i < lines.across; i++) {
      const step = readStep(lines, at, i)
      if (step === 0) continue
      strength += Math.min(step, maxStrength)
      count++
    }
    if (count >= least) edges.push({ at, strength })
  }
  const chosen: number[] = []
  for (const edge of edges.sort((a, b) => b.strength - a.strength)) {
    if (chosen.length === maxEdges) break
    if (chosen.every((at) => Math.abs(at - edge.at) > edgeWidth)) chosen.push(edge.at)
  }
  const sides = chosen.sort((a, b) => a - b).map((at): Side => ({ at, steps: countSteps(lines, at) }))
  return [{ at: 0, steps: undefined }, ...sides, { at: length, steps: undefined }]
}

function countSteps(lines: Differences, at: number): Uint16Array {
  const steps = new Uint16Array(lines.across + 1)
  for (let i = 0; i < lines.across; i++) steps[i + 1] = (steps[i] as number) + Number(readStep(lines, at, i) > 0)
  return steps
}

/** The difference at a cell of a line, if that is clearly greater than on one side of the line; otherwise 0. */
function readStep({ differences, across }: Differences, line: number, i: number): number {
  const difference = differences[line * across + i] as number
  if (difference < edgeStep) return 0
  const before = differences[(line - nearby) * across + i] as number
  const behind = differences[(line + nearby) * across + i] as number
  return difference >= Math.min(before, behind) * overNearby ? difference : 0
}

type Differences = { differences: Uint8Array; length: number; across: number }

/** How much the cells before and behind each cell differ, line by line: scaling mixes the colours of an edge. */
function readDifferences({ grey, side }: Square, { left, top, right, bottom }: Cells, axis: Axis): Differences {
  const isRows = axis === 'rows'
  const [length, across] = isRows ? [bottom - top, right - left] : [right - left, bottom - top]
  const [along, beside] = isRows ? [side, 1] : [1, side]
  const differences = new Uint8Array(length * across)
  for (let line = 1; line < length - 1; line++) {
    let at = top * side + left + line * along
    for (let i = line * across; i < (line + 1) * across; i++, at += beside) {
      differences[i] = Math.abs((grey[at + along] as number) - (grey[at - along] as number))
    }
  }
  return { differences, length, across }
}

/** The rectangles with the clearest sides, without those that nearly coincide with a clearer one. */
function chooseClearest(insets: Inset[]): Cells[] {
  const chosen: Cells[] = []
  for (const { cells } of insets.sort((a, b) => b.coverage - a.coverage)) {
    if (chosen.length === maxInsets) break
    if (!chosen.some((other) => nearlyCoincide(other, cells))) chosen.push(cells)
  }
  return chosen
}

/** Whether most of two rectangles lies in both. */
function nearlyCoincide(a: Cells, b: Cells): boolean {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left)
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
  if (width <= 0 || height <= 0) return false
  const shared = width * height
  return shared >= coinciding * (getArea(a) + getArea(b) - shared)
}
