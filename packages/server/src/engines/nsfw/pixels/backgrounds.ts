import type { Raster } from './render.ts'

export type Background = 'white' | 'black'

/** A smaller transparent share is a rounded corner or a soft edge. */
const minTransparentShare = 0.05

/**
 * The backgrounds on which a transparent picture is classified. Pages are white, dark themes and image viewers black,
 * and a picture can be drawn to show on one of them only; so both are used where they make a difference.
 */
export const findBackgrounds = (raster: Raster): Background[] =>
  isTransparent(raster) ? ['white', 'black'] : ['white']

export function isTransparent({ data, channels }: Raster): boolean {
  if (channels === 3) return false
  let transparency = 0
  for (let i = 3; i < data.length; i += 4) transparency += 255 - (data[i] ?? 0)
  return transparency / (255 * (data.length / 4)) >= minTransparentShare
}

/** Draws a raster on a background, in memory of its own: the raster may be a part of something large. */
export function flatten({ data, channels }: Raster, background: Background): Buffer {
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
