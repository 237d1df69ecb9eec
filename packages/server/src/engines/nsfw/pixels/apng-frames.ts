import { readPng } from './damaged-png.ts'
import { type FrameSource, maxFramesPerPass } from './frame-source.ts'
import { toPng } from './png-chunks.ts'
import type { Apng, ApngFrame } from './read-apng.ts'
import { newUnsupported } from './refusal.ts'
import { type Raster, render, renderWhole, type Shape } from './render.ts'

/**
 * Each frame is read as a PNG of its own and drawn where the animation says, as a viewer does. Reading on from where
 * the last reading ended does not begin again.
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
    // The canvas, the frame, what was there before, and frames that wait for the garbage collector.
    heldBytes: width * height * 4 * 6,
    read,
  }
}

type Canvas = { width: number; height: number; data: Buffer }

const toSource = ({ width, height, data }: Canvas) => ({
  bytes: data,
  options: { raw: { width, height, channels: 4 as const } },
})

/** Draws it and returns what leaves the canvas as the next frame expects it. */
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
