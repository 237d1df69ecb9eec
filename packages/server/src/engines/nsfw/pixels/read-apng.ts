import { type PngChunk, readPngChunks } from './png-chunks.ts'
import { newUnsupported } from './refusal.ts'

export type ApngFrame = {
  width: number
  height: number
  left: number
  top: number
  /** What the canvas becomes after it. */
  dispose: 'none' | 'background' | 'previous'
  blend: 'source' | 'over'
  data: Buffer[]
}

export type Apng = {
  /** IHDR of the canvas. */
  header: Buffer
  /** What tells how to read the pixels: palette, transparency, colours. */
  shared: { type: string; data: Buffer }[]
  /** The picture that viewers without animation show, when it is no part of the animation. */
  still: Buffer[] | undefined
  frames: ApngFrame[]
}

/**
 * libvips shows the first picture of an animated PNG and is silent about the rest. Undefined when there is no rest;
 * frames that contradict each other are refused, because every viewer makes something else of them.
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
