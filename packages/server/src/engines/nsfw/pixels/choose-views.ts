import { type Shape, smallShape } from '../models/model.ts'
import { type Background, findBackgrounds, flatten } from './backgrounds.ts'
import { fingerprintShape, type SeenViews, toFingerprint } from './fingerprints.ts'
import type { FrameSource } from './frame-sources.ts'
import { readParts } from './parts.ts'
import type { Raster } from './render.ts'
import type { Pass, View } from './views.ts'

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
