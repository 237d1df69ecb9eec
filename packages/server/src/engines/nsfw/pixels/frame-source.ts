import type { Raster, Shape } from './render.ts'

/** The frames of a picture, one after another; a still picture has one. */
export type FrameSource = {
  frames: number
  /** So many are read at a time. */
  framesPerPass: number
  /** What its decoder holds at once. */
  heldBytes: number
  /** Frames from `first` on. What comes before them is decoded as well: formats allow no other way. */
  read(first: number, count: number, shape: Shape): Promise<Raster[]>
}

/** 50 MB in the small size, 90 MB in the large one. */
export const maxFramesPerPass = 250
