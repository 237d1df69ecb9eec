/** A part of a picture; all values are shares of the picture's width and height, from 0 to 1. */
export type Box = { left: number; top: number; width: number; height: number }

type Size = { width: number; height: number }

/** A rectangle of cells of the square in which regions are searched; the ends are exclusive. */
type Cells = { left: number; top: number; right: number; bottom: number }

const whole: Box = { left: 0, top: 0, width: 1, height: 1 }

/** Mean deviation from its mean up to which a line is of one colour, also after compression. */
const plainDeviation = 4
/** Distance of the means of two lines up to which they belong to the same border. */
const sameColour = 8
/** A panel takes at least this share of each side of the picture, so a collage has at most 7 panels in a row. */
const minShare = 0.14
/** A trimmed picture is one of its own when the border took at least this share of its area. */
const minBorderShare = 0.08
/** From this ratio of its sides on, a picture is classified in tiles. */
const stripRatio = 2
/** Pictures with a shorter side are lines. */
const minStripPixels = 32
/** Strips of up to so many squares are tiled with half of each tile in the next. */
const maxOverlappedRatio = 10

/**
 * Finds the parts of a picture that are pictures of their own: the content within a border of one colour, the panels of
 * a collage, and the tiles of a strip. `pixels` is the picture squashed into an RGB square.
 */
export function findRegions(pixels: Buffer, size: Size): Box[] {
  const side = Math.sqrt(pixels.length / 3)
  const square = { grey: toGrey(pixels), side }
  const content = trim(square, { left: 0, top: 0, right: side, bottom: side })
  if (content === undefined) return []
  const isTrimmed = getArea(content) < (1 - minBorderShare) * side * side
  const panels = [...(isTrimmed ? [content] : []), ...split(square, content, 0)]
  const boxes = panels.map((cells) => toBox(cells, side))
  const tiles = [whole, ...boxes].flatMap((box) => tileStrip(box, size))
  return [...boxes, ...tiles]
}

/** Nine tiles of half the width and height, half over each other, for pictures that are larger than what a model sees. */
export function findTiles({ width, height }: Size, side: number): Box[] {
  if (Math.min(width, height) < side * 2) return []
  const starts = [0, 0.25, 0.5]
  return starts.flatMap((top) => starts.map((left) => ({ left, top, width: 0.5, height: 0.5 })))
}

function tileStrip(box: Box, size: Size): Box[] {
  const [width, height] = [box.width * size.width, box.height * size.height]
  const ratio = Math.max(width, height) / Math.min(width, height)
  if (ratio <= stripRatio || Math.min(width, height) < minStripPixels) return []
  const count = ratio <= maxOverlappedRatio ? Math.ceil(ratio * 2) - 1 : Math.ceil(ratio)
  const share = 1 / ratio
  return Array.from({ length: count }, (_, i) => {
    const start = (i / (count - 1)) * (1 - share)
    return width > height
      ? { ...box, left: box.left + start * box.width, width: share * box.width }
      : { ...box, top: box.top + start * box.height, height: share * box.height }
  })
}

type Square = { grey: Uint8Array; side: number }
type Line = { mean: number; deviation: number }
type Axis = 'rows' | 'columns'

const getArea = ({ left, top, right, bottom }: Cells) => (right - left) * (bottom - top)

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

/** Removes the lines of one colour at each edge. Undefined when nothing is left. */
function trim(square: Square, cells: Cells): Cells | undefined {
  const rows = readLines(square, cells, 'rows')
  const [top, bottom] = trimLines(rows)
  if (top >= bottom) return undefined
  const inner = { ...cells, top: cells.top + top, bottom: cells.top + bottom }
  const [left, right] = trimLines(readLines(square, inner, 'columns'))
  if (left >= right) return undefined
  const trimmed = { ...inner, left: cells.left + left, right: cells.left + right }
  // Bars at the sides hide bars above and below that do not reach over the whole width.
  const isSmaller = getArea(trimmed) < getArea(inner) && left + right > 0
  if (!isSmaller) return trimmed
  const [first, last] = trimLines(readLines(square, trimmed, 'rows'))
  return first >= last ? undefined : { ...trimmed, top: trimmed.top + first, bottom: trimmed.top + last }
}

function trimLines(lines: Line[]): [first: number, last: number] {
  const count = (from: Line[]) => {
    const [edge] = from
    if (edge === undefined) return 0
    const end = from.findIndex((line) => line.deviation > plainDeviation || getDistance(line, edge) > sameColour)
    return end < 0 ? from.length : end
  }
  const first = count(lines)
  return [first, lines.length - count(lines.toReversed())]
}

/**
 * Splits along the lines that cross the whole rectangle, and each part again. Parts of every depth are returned: a line
 * within a panel looks like the edge of one.
 */
function split(square: Square, cells: Cells, depth: number): Cells[] {
  if (depth > 3) return []
  for (const isRegular of [false, true]) {
    for (const axis of ['rows', 'columns'] as const) {
      const parts = cut(square, cells, axis, isRegular)
      if (parts.length < 2) continue
      return parts.flatMap((part) => {
        const trimmed = trim(square, part)
        return trimmed === undefined ? [] : [trimmed, ...split(square, trimmed, depth + 1)]
      })
    }
  }
  return []
}

function cut(square: Square, cells: Cells, axis: Axis, isRegular: boolean): Cells[] {
  const lines = readLines(square, cells, axis)
  const least = Math.round(square.side * minShare)
  const gaps = [...findGutters(lines), ...findSeams(square, cells, axis, isRegular)].sort(([a], [b]) => a - b)
  const parts: Cells[] = []
  let start = 0
  for (const [gutter, next] of gaps) {
    if (gutter - start < least || lines.length - next < least) continue
    parts.push(slice(cells, axis, start, gutter))
    start = next
  }
  parts.push(slice(cells, axis, start, lines.length))
  return parts
}

const slice = (cells: Cells, axis: Axis, start: number, end: number): Cells =>
  axis === 'rows'
    ? { ...cells, top: cells.top + start, bottom: cells.top + end }
    : { ...cells, left: cells.left + start, right: cells.left + end }

type Gap = [start: number, end: number]

/** A gutter wider than this share is a part of a panel, such as a sky or a wall. */
const maxGutterShare = 0.1

/** Runs of lines of one colour, between lines that are not. */
function findGutters(lines: Line[]): Gap[] {
  const gaps: Gap[] = []
  for (let at = 0; at < lines.length; at++) {
    const first = lines[at] as Line
    if (first.deviation > plainDeviation) continue
    let end = at + 1
    while (end < lines.length) {
      const line = lines[end] as Line
      if (line.deviation > plainDeviation || getDistance(line, first) > sameColour) break
      end++
    }
    if (at > 0 && end < lines.length && end - at <= lines.length * maxGutterShare) gaps.push([at, end])
    at = end
  }
  return gaps
}

/** Share of a line whose cells must differ from those beyond a seam, and the difference that counts. */
const seam = { share: 0.75, step: 8, overUsual: 4 }
/** The share that is enough where the panels of a regular collage meet, and the distance in cells from that place. */
const gridSeam = { share: 0.4, overUsual: 2, within: 2 }

/** Lines at which nearly all cells change at once: panels that touch each other, or a gutter thinner than a cell. */
function findSeams({ grey, side }: Square, cells: Cells, axis: Axis, isRegular: boolean): Gap[] {
  const length = axis === 'rows' ? cells.bottom - cells.top : cells.right - cells.left
  const across = axis === 'rows' ? cells.right - cells.left : cells.bottom - cells.top
  const [along, beside] = axis === 'rows' ? [side, 1] : [1, side]
  const origin = cells.top * side + cells.left
  const steps: { mean: number; share: number }[] = []
  for (let line = 1; line < length - 1; line++) {
    let [sum, changed] = [0, 0]
    for (let i = 0; i < across; i++) {
      const at = origin + line * along + i * beside
      const difference = Math.abs((grey[at + along] as number) - (grey[at - along] as number))
      sum += difference
      if (difference >= seam.step) changed++
    }
    steps.push({ mean: sum / across, share: changed / across })
  }
  const usual = steps.map(({ mean }) => mean).sort((a, b) => a - b)[steps.length >> 1] ?? 0
  const gaps: Gap[] = []
  for (const [i, { mean, share }] of steps.entries()) {
    const least = isRegular && isOnGrid(i + 1, length) ? gridSeam : seam
    if (share < least.share || mean < usual * least.overUsual) continue
    const isPeak = mean >= (steps[i - 1]?.mean ?? 0) && mean > (steps[i + 1]?.mean ?? 0)
    if (isPeak) gaps.push([i + 1, i + 2])
  }
  return gaps
}

const isOnGrid = (line: number, length: number) =>
  [2, 3, 4].some((count) => {
    const nearest = Math.round((line / length) * count)
    return nearest > 0 && nearest < count && Math.abs(line - (nearest * length) / count) <= gridSeam.within
  })

function readLines({ grey, side }: Square, { left, top, right, bottom }: Cells, axis: Axis): Line[] {
  const lines: Line[] = []
  const [from, to] = axis === 'rows' ? [top, bottom] : [left, right]
  const [start, end] = axis === 'rows' ? [left, right] : [top, bottom]
  const beside = axis === 'rows' ? 1 : side
  for (let line = from; line < to; line++) {
    const first = axis === 'rows' ? line * side + start : start * side + line
    lines.push(readLine(grey, first, beside, end - start))
  }
  return lines
}

function readLine(grey: Uint8Array, first: number, step: number, count: number): Line {
  const end = first + step * count
  let total = 0
  for (let at = first; at < end; at += step) total += grey[at] as number
  const mean = total / count
  let sum = 0
  for (let at = first; at < end; at += step) sum += Math.abs((grey[at] as number) - mean)
  return { mean, deviation: sum / count }
}

const getDistance = (a: Line, b: Line) => Math.abs(a.mean - b.mean)

/** Reduces each pixel to one value, with other weights than the eye: no two common colours become the same. */
function toGrey(pixels: Buffer): Uint8Array {
  const grey = new Uint8Array(pixels.length / 3)
  for (let to = 0, from = 0; to < grey.length; to++, from += 3) {
    grey[to] =
      ((pixels[from] as number) * 77 + (pixels[from + 1] as number) * 128 + (pixels[from + 2] as number) * 51) >> 8
  }
  return grey
}
