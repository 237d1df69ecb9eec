import { type Axis, type Cells, getArea, type Square } from './lines.ts'

/** An inset takes at least this share of each side of the picture. */
const minShare = 0.2
/** An inset that leaves less of the area around it is nearly the whole picture. */
const minSurround = 0.08
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
export function findInsets(square: Square, cells: Cells): Cells[] {
  const least = Math.round(square.side * minShare)
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
  const least = square.side * minShare * leastCovered.side
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

function countSteps(lines: Lines, at: number): Uint16Array {
  const steps = new Uint16Array(lines.across + 1)
  for (let i = 0; i < lines.across; i++) steps[i + 1] = (steps[i] as number) + Number(readStep(lines, at, i) > 0)
  return steps
}

/** The difference at a cell of a line, if that is clearly greater than on one side of the line; otherwise 0. */
function readStep({ differences, across }: Lines, line: number, i: number): number {
  const difference = differences[line * across + i] as number
  if (difference < edgeStep) return 0
  const before = differences[(line - nearby) * across + i] as number
  const behind = differences[(line + nearby) * across + i] as number
  return difference >= Math.min(before, behind) * overNearby ? difference : 0
}

type Lines = { differences: Uint8Array; length: number; across: number }

/** How much the cells before and behind each cell differ, line by line: scaling mixes the colours of an edge. */
function readDifferences({ grey, side }: Square, { left, top, right, bottom }: Cells, axis: Axis): Lines {
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
export function nearlyCoincide(a: Cells, b: Cells): boolean {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left)
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
  if (width <= 0 || height <= 0) return false
  const shared = width * height
  return shared >= coinciding * (getArea(a) + getArea(b) - shared)
}
