import { type FrameSource, maxFramesPerPass } from './frame-source.ts'
import { newUnsupported } from './refusal.ts'
import { type Raster, render, type Shape } from './render.ts'

type Roll = { format: string; width: number; height: number; pages: number }

/** GIF and WebP: libvips composes the frames into one tall picture and decodes it in one pass, from the first frame. */
export function makeRolledFrames(bytes: Buffer, roll: Roll, maxHeldBytes: number): FrameSource {
  const canvasBytes = roll.width * roll.height * 4
  // Of a WebP whose frames are parts of the canvas libvips holds all frames of the pass at full size, of a GIF it does not.
  const isHeld = roll.format === 'image/webp'
  // Canvases that it needs to draw one frame over another, as measured.
  const composing = isHeld ? 6 : 3
  const affordable = Math.floor(maxHeldBytes / canvasBytes) - composing
  const framesPerPass = isHeld ? Math.min(maxFramesPerPass, Math.max(1, affordable)) : maxFramesPerPass

  const read = async (first: number, count: number, shape: Shape): Promise<Raster[]> => {
    const { data, channels } = await render({ bytes, options: { page: first, pages: count, autoOrient: false } }, shape)
    const frameBytes = shape.side * shape.side * channels
    if (data.length !== frameBytes * count) throw newUnsupported('fewer frames than stated')
    return Array.from({ length: count }, (_, i) => ({
      data: data.subarray(i * frameBytes, (i + 1) * frameBytes),
      channels,
    }))
  }

  return {
    frames: roll.pages,
    framesPerPass,
    heldBytes: canvasBytes * (composing + (isHeld ? Math.min(framesPerPass, roll.pages) : 0)),
    read,
  }
}
