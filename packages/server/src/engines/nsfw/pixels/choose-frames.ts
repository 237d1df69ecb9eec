import { type Shape, smallShape } from '../models/model.ts'
import type { FrameSource } from './frame-sources.ts'
import type { Raster } from './render.ts'

/** One view of a frame, as a viewer may show it. A transparent frame has two: on white and on black. */
export type Frame = {
  /** The frame's number in the picture, from 0. */
  index: number
  background: Background
  /** RGB, 8 bits, 224 x 224, antialiased bilinear. */
  small: Buffer
  /** RGB, 8 bits, in the shape of a model. Any but the small one decodes again, once for all chosen frames of a pass. */
  render(shape: Shape): Promise<Buffer>
}

type Candidate = Frame & { thumbnail: Thumbnail }

/**
 * Chooses the views to classify. Several sources of the same frames are several ways to show them. Each pass keeps only
 * its chosen views; the final choice among those is nearly as good as one among all, and a view that is unlike all
 * others survives both.
 */
export async function chooseFrames(frameSources: FrameSource[], most: number): Promise<Frame[]> {
  const candidates: Candidate[] = []
  for (const frameSource of frameSources) {
    for (let first = 0; first < frameSource.frames; first += frameSource.framesPerPass) {
      candidates.push(...(await choosePass(frameSource, first, most)))
    }
  }
  return chooseDistinct(candidates, most)
    .sort((a, b) => a.index - b.index)
    .map(({ thumbnail: _, ...frame }) => frame)
}

async function choosePass(frameSource: FrameSource, first: number, most: number): Promise<Candidate[]> {
  const rasters = await frameSource.read(
    first,
    Math.min(frameSource.framesPerPass, frameSource.frames - first),
    smallShape,
  )
  const views = rasters.flatMap((raster, i) =>
    findBackgrounds(raster).map((background) => {
      const thumbnail = toThumbnail(flatten(raster, background), smallShape.side)
      return { index: first + i, background, raster, thumbnail }
    }),
  )
  const chosen = chooseDistinct(views, most)
  const readAgain = makeShapeReader(
    frameSource,
    chosen.map(({ index }) => index),
  )
  return chosen.map(({ index, background, raster, thumbnail }) => {
    const small = flatten(raster, background)
    const render = async (shape: Shape) =>
      isSameShape(shape, smallShape) ? small : readAgain(shape, index, background)
    return { index, background, thumbnail, small, render }
  })
}

const isSameShape = (a: Shape, b: Shape) => a.side === b.side && a.kernel === b.kernel

/** Decodes all chosen frames of a pass at once, because a suspicious frame often has suspicious neighbours. */
function makeShapeReader(frameSource: FrameSource, indexes: number[]) {
  const first = Math.min(...indexes)
  const count = Math.max(...indexes) - first + 1
  const readings = new Map<string, Promise<Map<string, Buffer>>>()

  const read = async (shape: Shape) => {
    const rasters = await frameSource.read(first, count, shape)
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

  return async (shape: Shape, index: number, background: Background): Promise<Buffer> => {
    const key = `${shape.side} ${shape.kernel}`
    const reading = readings.get(key) ?? read(shape)
    readings.set(key, reading)
    const found = (await reading).get(`${index} ${background}`)
    if (found === undefined) throw new Error(`Frame ${index} was not read`)
    return found
  }
}

/** A small copy of a view, to measure the distance between two. */
type Thumbnail = Uint8Array

/** Root mean square of a channel. Smaller distances are noise of dithering and compression, not another scene. */
const minDistance = 4

/**
 * Chooses the first candidate, then always the one that differs most from those chosen before, up to `most`. So changes
 * of scene come first, one odd frame among many alike is always chosen, and a frame like a chosen one never is.
 */
function chooseDistinct<T extends { thumbnail: Thumbnail }>(candidates: T[], most: number): T[] {
  const chosen: T[] = []
  const distances = candidates.map(() => Number.POSITIVE_INFINITY)
  let at = 0
  while (chosen.length < most) {
    const next = candidates[at]
    if (next === undefined || (distances[at] ?? 0) < minDistance * minDistance) break
    chosen.push(next)
    for (const [i, { thumbnail }] of candidates.entries()) {
      const distance = distances[i] ?? 0
      distances[i] = Math.min(distance, getMeanSquare(thumbnail, next.thumbnail, distance))
    }
    at = findLargest(distances)
  }
  return chosen
}

/** Cells across a thumbnail: enough to tell a picture from the same picture under a mosaic. */
const cells = 56

/** Averages blocks of an RGB square whose side is a multiple of 56. */
function toThumbnail(pixels: Buffer, side: number): Thumbnail {
  const block = side / cells
  const sums = new Uint32Array(cells * cells * 3)
  let from = 0
  for (let y = 0; y < side; y++) {
    const row = Math.floor(y / block) * cells
    for (let cell = 0; cell < cells; cell++) {
      const at = (row + cell) * 3
      let [red, green, blue] = [0, 0, 0]
      for (let x = 0; x < block; x++, from += 3) {
        red += pixels[from] ?? 0
        green += pixels[from + 1] ?? 0
        blue += pixels[from + 2] ?? 0
      }
      sums[at] = (sums[at] ?? 0) + red
      sums[at + 1] = (sums[at + 1] ?? 0) + green
      sums[at + 2] = (sums[at + 2] ?? 0) + blue
    }
  }
  const means = new Uint8Array(sums.length)
  for (let i = 0; i < sums.length; i++) means[i] = (sums[i] ?? 0) / (block * block)
  return means
}

/** Stops above `enough`, because most candidates are far from most of the chosen ones. */
function getMeanSquare(a: Thumbnail, b: Thumbnail, enough: number): number {
  const most = enough * a.length
  const row = cells * 3
  let sum = 0
  // The top and bottom cells are left out: there the frames of an animation blend into their neighbours.
  for (let start = row; start < a.length - row && sum < most; start += row) {
    for (let i = start; i < start + row; i++) {
      const difference = (a[i] ?? 0) - (b[i] ?? 0)
      sum += difference * difference
    }
  }
  return sum / a.length
}

/** The first of equals, so that the same picture always gives the same frames. */
function findLargest(values: number[]): number {
  let at = 0
  for (const [i, value] of values.entries()) {
    if (value > (values[at] ?? 0)) at = i
  }
  return at
}

type Background = 'white' | 'black'

/** A smaller transparent share is a rounded corner or a soft edge. */
const minTransparentShare = 0.05

/**
 * The backgrounds on which a transparent picture is classified. Pages are white, dark themes and image viewers black,
 * and a picture can be drawn to show on one of them only; so both are used where they make a difference. Colours under
 * full transparency are shown by no viewer and do not count.
 */
function findBackgrounds({ data, channels }: Raster): Background[] {
  if (channels === 3) return ['white']
  let transparency = 0
  for (let i = 3; i < data.length; i += 4) transparency += 255 - (data[i] ?? 0)
  const share = transparency / (255 * (data.length / 4))
  return share < minTransparentShare ? ['white'] : ['white', 'black']
}

/** Draws a raster on a background, in memory of its own: the raster may be a part of something large. */
function flatten({ data, channels }: Raster, background: Background): Buffer {
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
