import {
  type Axis,
  type Cells,
  getDistance,
  type Line,
  plainDeviation,
  readLines,
  type Square,
  sameColour,
  slice,
  trim,
} from './lines.ts'

/** A panel takes at least this share of each side of the picture, so a collage has at most 7 panels in a row. */
const minShare = 0.14

/** A part of a collage, and whether it is split into further parts. */
export type Panel = { cells: Cells; isSplit: boolean }

/**
 * Splits along the lines that cross the whole rectangle, and each part again. Parts of every depth are returned: a line
 * within a panel looks like the edge of one.
 */
export function splitCollage(square: Square, cells: Cells, depth = 0): Panel[] {
  if (depth > 3) return []
  const seams = { rows: readSeams(square, cells, 'rows'), columns: readSeams(square, cells, 'columns') }
  const grid = depth === 0 ? findGrid(square, cells, seams) : []
  for (const axis of ['rows', 'columns'] as const) {
    const parts = cut(square, cells, axis, seams[axis])
    if (parts.length < 2) continue
    const panels = parts.flatMap((part) => toPanels(square, part, depth))
    // A line within a panel cuts it into two; the even grid has it as a whole.
    const whole = grid.filter((part) => !panels.some((panel) => isSame(panel.cells, part)))
    return [...panels, ...whole.map((cells) => ({ cells, isSplit: false }))]
  }
  const even = depth === 0 ? grid : findGrid(square, cells, seams)
  return even.flatMap((part) => toPanels(square, part, depth))
}

/** Whether two rectangles differ by a few cells at the most. */
const isSame = (a: Cells, b: Cells) =>
  (['left', 'top', 'right', 'bottom'] as const).every((edge) => Math.abs(a[edge] - b[edge]) <= 6)

function toPanels(square: Square, part: Cells, depth: number): Panel[] {
  const cells = trim(square, part)
  if (cells === undefined) return []
  const panels = splitCollage(square, cells, depth + 1)
  return [{ cells, isSplit: panels.length > 0 }, ...panels]
}

/**
 * Cuts a rectangle at its gutters and seams, from its start on and at the widest ones first: a line that is drawn near
 * the edge of a panel may come before the gutter, and there is no room for a panel between both.
 */
function cut(square: Square, cells: Cells, axis: Axis, seams: Seam[]): Cells[] {
  const gaps = [...findGutters(square, cells, axis), ...seams.filter(isSeam).map(toGap)].sort(([a], [b]) => a - b)
  const inOrder = cutAt(square, cells, axis, gaps)
  const byWidth = cutAt(square, cells, axis, chooseWidest(square, gaps, getLength(cells, axis)))
  return [...inOrder, ...byWidth.filter((part) => !inOrder.some((other) => isSame(part, other)))]
}

/** The widest gaps that leave room for a panel on both sides, in order. */
function chooseWidest({ side }: Square, gaps: Gap[], length: number): Gap[] {
  const least = Math.round(side * minShare)
  const chosen: Gap[] = [
    [0, 0],
    [length, length],
  ]
  for (const gap of gaps.toSorted((a, b) => b[1] - b[0] - (a[1] - a[0]))) {
    const [start, end] = gap
    if (chosen.every(([from, to]) => start - to >= least || from - end >= least)) chosen.push(gap)
  }
  return chosen.slice(2).sort(([a], [b]) => a - b)
}

function cutAt({ side }: Square, cells: Cells, axis: Axis, gaps: Gap[]): Cells[] {
  const least = Math.round(side * minShare)
  const length = getLength(cells, axis)
  const parts: Cells[] = []
  let start = 0
  for (const [gutter, next] of gaps) {
    if (gutter - start < least || length - next < least) continue
    parts.push(slice(cells, axis, start, gutter))
    start = next
  }
  parts.push(slice(cells, axis, start, length))
  return parts
}

const getLength = ({ left, top, right, bottom }: Cells, axis: Axis) => (axis === 'rows' ? bottom - top : right - left)

type Gap = [start: number, end: number]

/** A gutter wider than this share is a part of a panel, such as a sky or a wall. */
const maxGutterShare = 0.1
/**
 * A gutter ends at a straight edge of a panel: so many cells beside it differ by a step, as a share of the picture and
 * of the line. A sky, a wall and the paper around a drawing have no such edge.
 */
const panelEdge = { distance: 2, step: 10, ofPicture: minShare, ofLine: 0.6 }

/** Runs of lines of one colour along the edge of a panel. */
function findGutters(square: Square, cells: Cells, axis: Axis): Gap[] {
  const lines = readLines(square, cells, axis)
  const across = getLength(cells, axis === 'rows' ? 'columns' : 'rows')
  const least = Math.min(square.side * panelEdge.ofPicture, across * panelEdge.ofLine)
  const isEdge = (at: number, colour: number) =>
    at >= 0 && at < lines.length && measureEdge(square, cells, axis, at, colour) >= least
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
    const { distance } = panelEdge
    const isBetween = at > 0 && end < lines.length && end - at <= lines.length * maxGutterShare
    const last = lines[end - 1] as Line
    if (isBetween && (isEdge(at - distance, first.mean) || isEdge(end - 1 + distance, last.mean))) gaps.push([at, end])
    at = end
  }
  return gaps
}

/** The most cells in a row of a line that differ from a colour. */
function measureEdge({ grey, side }: Square, cells: Cells, axis: Axis, line: number, colour: number): number {
  const across = getLength(cells, axis === 'rows' ? 'columns' : 'rows')
  const [along, beside] = axis === 'rows' ? [side, 1] : [1, side]
  const first = cells.top * side + cells.left + line * along
  let [longest, current] = [0, 0]
  for (let i = 0; i < across; i++) {
    const isDifferent = Math.abs((grey[first + i * beside] as number) - colour) >= panelEdge.step
    current = isDifferent ? current + 1 : 0
    if (current > longest) longest = current
  }
  return longest
}

/** A line at which cells change at once. */
type Seam = {
  at: number
  /** Share of the line's cells that differ from those beyond it. */
  share: number
  /** The mean difference, as a multiple of that of most lines. */
  overUsual: number
}

/** Difference of two cells that counts. */
const seamStep = 8
/** The mean difference of lines in a picture of smooth colours: edges of drawings are not compared with nothing. */
const leastUsual = 2

/** Panels that touch each other, or a gutter thinner than a cell: nearly all cells change at once. */
const isSeam = ({ share, overUsual }: Seam) => share >= 0.75 && overUsual >= 4

const toGap = ({ at }: Seam): Gap => [at, at + 1]

/** The lines at which more cells change than at those before and behind them. */
function readSeams({ grey, side }: Square, cells: Cells, axis: Axis): Seam[] {
  const length = getLength(cells, axis)
  const across = getLength(cells, axis === 'rows' ? 'columns' : 'rows')
  const [along, beside] = axis === 'rows' ? [side, 1] : [1, side]
  const origin = cells.top * side + cells.left
  const steps: { mean: number; share: number }[] = []
  for (let line = 1; line < length - 1; line++) {
    let [sum, changed] = [0, 0]
    for (let i = 0; i < across; i++) {
      const at = origin + line * along + i * beside
      const difference = Math.abs((grey[at + along] as number) - (grey[at - along] as number))
      sum += difference
      if (difference >= seamStep) changed++
    }
    steps.push({ mean: sum / across, share: changed / across })
  }
  const middle = steps.map(({ mean }) => mean).sort((a, b) => a - b)[steps.length >> 1] ?? 0
  const usual = Math.max(middle, leastUsual)
  const isPeak = (i: number, mean: number) => mean >= (steps[i - 1]?.mean ?? 0) && mean > (steps[i + 1]?.mean ?? 0)
  return steps.flatMap(({ mean, share }, i) => (isPeak(i, mean) ? [{ at: i + 1, share, overUsual: mean / usual }] : []))
}

/** The largest distance in cells of a seam from the place where the panels of a regular collage meet. */
const gridDistance = 2

/** On a regular grid, less of each line is enough, because all lines must be there. */
const isGridSeam = ({ share, overUsual }: Seam) => share >= 0.4 && overUsual >= 2

/** Cuts a rectangle into equal panels when there is a seam wherever they would meet. */
function findGrid(square: Square, cells: Cells, found: Record<Axis, Seam[]>): Cells[] {
  const [rows, columns] = (['rows', 'columns'] as const).map((axis) => {
    const length = getLength(cells, axis)
    const seams = found[axis].filter(isGridSeam)
    return [4, 3, 2].map((count) => findGridLines(seams, length, count)).find((lines) => lines !== undefined) ?? []
  }) as [Seam[], Seam[]]
  // A single weak line is found in every second picture.
  if (rows.length + columns.length < 2) return []
  return cutAt(square, cells, 'rows', rows.map(toGap)).flatMap((row) =>
    cutAt(square, row, 'columns', columns.map(toGap)),
  )
}

/** The seams between so many equal panels, or undefined when one of them is missing. */
function findGridLines(seams: Seam[], length: number, count: number): Seam[] | undefined {
  const lines: Seam[] = []
  for (let i = 1; i < count; i++) {
    const near = seams.filter(({ at }) => Math.abs(at - (i * length) / count) <= gridDistance)
    const strongest = near.sort((a, b) => b.overUsual - a.overUsual)[0]
    if (strongest === undefined) return undefined
    lines.push(strongest)
  }
  return lines
}
