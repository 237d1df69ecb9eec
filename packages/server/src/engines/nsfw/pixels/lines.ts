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

/** Removes the lines of one colour at each edge. Undefined when nothing is left. */
export function trim(square: Square, cells: Cells): Cells | undefined {
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
