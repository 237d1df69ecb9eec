import type { Raster } from './render.ts'

/** A rectangle of cells of the square in which regions are searched; the ends are exclusive. */
export type Cells = { left: number; top: number; right: number; bottom: number }

export type Square = { grey: Uint8Array; side: number }
export type Line = { mean: number; deviation: number }
export type Axis = 'rows' | 'columns'

/** Mean deviation from its mean up to which a line is of one colour, also after compression. */
export const plainDeviation = 4
/** Distance of the means of two lines up to which they belong to the same border. */
export const sameColour = 8

export const getArea = ({ left, top, right, bottom }: Cells) => (right - left) * (bottom - top)

/**
 * Removes the lines of one colour at each edge, from rows and columns in turn until one of them has none: bars at the
 * sides hide bars above and below that do not reach over the whole width, and a frame may have several colours.
 * Undefined when nothing is left.
 */
export function trim(square: Square, cells: Cells): Cells | undefined {
  let trimmed = cells
  for (let turn = 0; ; turn++) {
    const axis = turn % 2 === 0 ? 'rows' : 'columns'
    const lines = readLines(square, trimmed, axis)
    const [first, last] = trimLines(lines)
    if (first >= last) return undefined
    if (turn > 0 && last - first === lines.length) return trimmed
    trimmed = slice(trimmed, axis, first, last)
  }
}

/** The lines of a rectangle from one to another. */
export const slice = (cells: Cells, axis: Axis, start: number, end: number): Cells =>
  axis === 'rows'
    ? { ...cells, top: cells.top + start, bottom: cells.top + end }
    : { ...cells, left: cells.left + start, right: cells.left + end }

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

export function readLines({ grey, side }: Square, { left, top, right, bottom }: Cells, axis: Axis): Line[] {
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

export const getDistance = (a: Line, b: Line) => Math.abs(a.mean - b.mean)

export type Background = 'white' | 'black'

/** A smaller transparent share is a rounded corner or a soft edge. */
const minTransparentShare = 0.05

/**
 * The backgrounds on which a transparent picture is classified. Pages are white, dark themes and image viewers black,
 * and a picture can be drawn to show on one of them only; so both are used where they make a difference.
 */
export const findBackgrounds = (raster: Raster): Background[] =>
  isTransparent(raster) ? ['white', 'black'] : ['white']

export function isTransparent({ data, channels }: Raster): boolean {
  if (channels === 3) return false
  let transparency = 0
  for (let i = 3; i < data.length; i += 4) transparency += 255 - (data[i] ?? 0)
  return transparency / (255 * (data.length / 4)) >= minTransparentShare
}

/** Draws a raster on a background, in memory of its own: the raster may be a part of something large. */
export function flatten({ data, channels }: Raster, background: Background): Buffer {
  if (channels === 3) return Buffer.from(data)
  const backdrop = background === 'white' ? 255 : 0
  const flat = Buffer.allocUnsafe((data.length / 4) * 3)
  for (let from = 0, to = 0; from < data.length; from += 4, to += 3) {
    const alpha = data[from + 3] ?? 0
    const rest = backdrop * (255 - alpha) + 127
    flat[to] = ((data[from] ?? 0) * alpha + rest) / 255
    flat[to + 1] = ((data[from + 1] ?? 0) * alpha + rest) / 255
    flat[to + 2] = ((data[from + 2] ?? 0) * alpha + rest) / 255
  }
  return flat
}
