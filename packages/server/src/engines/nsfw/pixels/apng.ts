import type { Shape } from '../models/model.ts'
import { type FrameSource, maxFramesPerPass, maxTinyPixels } from './frame-sources.ts'
import { type PngChunk, readPng, readPngChunks, toPng } from './png.ts'
import { newUnsupported, type Raster, render, renderWhole } from './render.ts'

type ApngFrame = {
  width: number
  height: number
  left: number
  top: number
  /** How the canvas is changed after the frame was shown. */
  dispose: 'none' | 'background' | 'previous'
  blend: 'source' | 'over'
  data: Buffer[]
}

export type Apng = {
  /** IHDR of the canvas. */
  header: Buffer
  /** Chunks that all frames need to be decoded: palette, transparency, colours. */
  shared: { type: string; data: Buffer }[]
  /** The picture that viewers without animation show, unless it is the first frame. */
  still: Buffer[] | undefined
  frames: ApngFrame[]
}

/**
 * Reads the frames of an animated PNG, of which libvips decodes only the first picture. Undefined when there is only one
 * picture. Frames that contradict each other are refused, because every viewer shows something else then.
 */
export function findApng(bytes: Buffer): Apng | undefined {
  const state: State = { shared: [], pixels: [], frames: [], stated: undefined, sequence: 0, isCut: true }
  for (const chunk of readPngChunks(bytes)) take(state, chunk)
  const { header, shared, pixels, frames, stated } = state
  if (stated === undefined && frames.length === 0) return undefined
  if (stated === undefined) throw newUnsupported('frames without an animation header')
  if (header === undefined || pixels.length === 0) throw newUnsupported('an animation without a picture')
  if (state.isCut && frames.at(-1)?.data.length === 0) frames.pop()
  if (frames.some(({ data }) => data.length === 0)) throw newUnsupported('a frame without data')
  if (frames.length > stated || (frames.length < stated && !state.isCut)) {
    throw newUnsupported(`${frames.length} frames where ${stated} are stated`)
  }
  const still = frames[0]?.data === pixels ? undefined : pixels
  if (still === undefined) checkFillsCanvas(frames[0], header)
  for (const frame of frames) checkInside(frame, header)
  if (frames.length + (still === undefined ? 0 : 1) < 2) return undefined
  return { header, shared, still, frames }
}

type State = {
  header?: Buffer
  shared: { type: string; data: Buffer }[]
  /** The IDAT chunks; the first frame shares them when it is the picture itself. */
  pixels: Buffer[]
  frames: ApngFrame[]
  stated: number | undefined
  sequence: number
  isCut: boolean
}

const sharedTypes = new Set(['PLTE', 'tRNS', 'iCCP', 'sRGB', 'cHRM'])

function take(state: State, { type, data, isWhole }: PngChunk) {
  const isBeforePixels = state.pixels.length === 0
  if (type === 'IEND') state.isCut = false
  else if (type === 'IDAT') state.pixels.push(data)
  else if (type === 'fdAT') takeData(state, data)
  else if (!isWhole) return
  else if (type === 'IHDR' && data.length === 13) state.header ??= data
  else if (type === 'acTL' && isBeforePixels) {
    if (state.stated !== undefined || data.length !== 8) throw newUnsupported('a broken animation header')
    state.stated = data.readUInt32BE(0)
  } else if (type === 'fcTL') takeControl(state, data)
  else if (sharedTypes.has(type) && isBeforePixels) state.shared.push({ type, data })
}

function takeControl(state: State, data: Buffer) {
  if (data.length !== 26) throw newUnsupported('a broken frame header')
  takeSequence(state, data)
  const isFirst = state.pixels.length === 0
  if (isFirst && state.frames.length > 0) throw newUnsupported('two frame headers for one picture')
  const dispose = (['none', 'background', 'previous'] as const)[data[24] ?? 0]
  const blend = (['source', 'over'] as const)[data[25] ?? 0]
  if (dispose === undefined || blend === undefined) throw newUnsupported('a broken frame header')
  state.frames.push({
    width: data.readUInt32BE(4),
    height: data.readUInt32BE(8),
    left: data.readUInt32BE(12),
    top: data.readUInt32BE(16),
    dispose,
    blend,
    data: isFirst ? state.pixels : [],
  })
}

function takeData(state: State, data: Buffer) {
  const frame = state.frames.at(-1)
  if (data.length < 4) {
    if (frame === undefined) throw newUnsupported('frames without a header')
    return
  }
  takeSequence(state, data)
  if (frame === undefined || frame.data === state.pixels) throw newUnsupported('frames without a header')
  frame.data.push(data.subarray(4))
}

function takeSequence(state: State, data: Buffer) {
  if (data.readUInt32BE(0) !== state.sequence++) throw newUnsupported('frames out of order')
}

function checkFillsCanvas(frame: ApngFrame | undefined, header: Buffer) {
  if (frame?.width !== header.readUInt32BE(0) || frame.height !== header.readUInt32BE(4)) {
    throw newUnsupported('a first frame of another size')
  }
}

function checkInside({ width, height, left, top }: ApngFrame, header: Buffer) {
  const isInside = left + width <= header.readUInt32BE(0) && top + height <= header.readUInt32BE(4)
  if (!isInside || width === 0 || height === 0) throw newUnsupported('a frame outside of the picture')
}

/**
 * Decodes each frame as a PNG of its own and draws it where the animation says, as a viewer does. A call of `read` that
 * continues the one before does not start from the first frame again.
 */
export function makeApngFrames(apng: Apng): FrameSource {
  const stills = apng.still === undefined ? 0 : 1
  const width = apng.header.readUInt32BE(0)
  const height = apng.header.readUInt32BE(4)
  let canvas: Canvas | undefined
  let drawn = 0

  const read = async (first: number, count: number, shape: Shape): Promise<Raster[]> => {
    if (canvas === undefined || Math.max(0, first - stills) < drawn) {
      canvas = { width, height, data: Buffer.alloc(width * height * 4) }
      drawn = 0
    }
    const rasters: Raster[] = []
    if (apng.still !== undefined && first === 0) {
      const still = { bytes: toFramePng(apng, canvas, apng.still) }
      rasters.push(await readPng(still, (source) => render(source, shape)))
    }
    for (const frame of apng.frames.slice(drawn, first + count - stills)) {
      const undo = await draw(apng, canvas, frame, drawn === 0)
      if (drawn + stills >= first) rasters.push(await render(toSource(canvas), shape))
      undo()
      drawn++
    }
    return rasters
  }

  return {
    frames: stills + apng.frames.length,
    framesPerPass: maxFramesPerPass,
    size: { width, height },
    readDetail: undefined,
    isTiny: width * height <= maxTinyPixels,
    // The canvas, the frame, the copy under the frame, and frames that wait for the garbage collector.
    heldBytes: width * height * 4 * 6,
    read,
  }
}

type Canvas = { width: number; height: number; data: Buffer }

const toSource = ({ width, height, data }: Canvas) => ({
  bytes: data,
  options: { raw: { width, height, channels: 4 as const } },
})

/** Draws a frame, and returns a function that disposes of it as the next frame expects. */
async function draw(apng: Apng, canvas: Canvas, frame: ApngFrame, isFirst: boolean): Promise<() => void> {
  const { data, channels } = await readPng({ bytes: toFramePng(apng, frame, frame.data) }, renderWhole)
  if (data.length !== frame.width * frame.height * channels) throw newUnsupported('a frame of another size')
  const before = frame.dispose === 'previous' && !isFirst ? copyRows(canvas, frame) : undefined
  for (let y = 0; y < frame.height; y++) {
    const row = data.subarray(y * frame.width * channels, (y + 1) * frame.width * channels)
    drawRow(canvas.data, getOffset(canvas, frame, y), row, channels, frame.blend)
  }
  return () => {
    if (frame.dispose === 'none') return
    for (let y = 0; y < frame.height; y++) {
      const at = getOffset(canvas, frame, y)
      if (before === undefined) canvas.data.fill(0, at, at + frame.width * 4)
      else before.copy(canvas.data, at, y * frame.width * 4, (y + 1) * frame.width * 4)
    }
  }
}

const getOffset = (canvas: Canvas, frame: ApngFrame, y: number) => ((frame.top + y) * canvas.width + frame.left) * 4

function copyRows(canvas: Canvas, frame: ApngFrame): Buffer {
  const copy = Buffer.allocUnsafe(frame.width * frame.height * 4)
  for (let y = 0; y < frame.height; y++) {
    const at = getOffset(canvas, frame, y)
    canvas.data.copy(copy, y * frame.width * 4, at, at + frame.width * 4)
  }
  return copy
}

function drawRow(canvas: Buffer, start: number, row: Buffer, channels: 3 | 4, blend: ApngFrame['blend']) {
  if (channels === 4 && blend === 'source') {
    row.copy(canvas, start)
    return
  }
  for (let from = 0, to = start; from < row.length; from += channels, to += 4) {
    const alpha = channels === 4 ? (row[from + 3] ?? 0) : 255
    if (alpha === 0) continue
    const under = ((canvas[to + 3] ?? 0) * (255 - alpha)) / 255
    const total = alpha + under
    for (let i = 0; i < 3; i++) {
      canvas[to + i] = ((row[from + i] ?? 0) * alpha + (canvas[to + i] ?? 0) * under) / total + 0.5
    }
    canvas[to + 3] = total + 0.5
  }
}

function toFramePng(apng: Apng, size: { width: number; height: number }, data: Buffer[]): Buffer {
  const header = Buffer.from(apng.header)
  header.writeUInt32BE(size.width, 0)
  header.writeUInt32BE(size.height, 4)
  return toPng([
    { type: 'IHDR', data: header },
    ...apng.shared,
    { type: 'IDAT', data: Buffer.concat(data) },
    { type: 'IEND', data: Buffer.alloc(0) },
  ])
}
