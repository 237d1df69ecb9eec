import type { Raster } from './render.ts'

export type Background = 'white' | 'black'

/** Less of the square than this is a rounded corner or a soft edge. */
const minTransparentShare = 0.05

/**
 * What a viewer puts behind a transparent picture is not ours to know: pages are white, dark themes and image viewers
 * black, and a picture can be drawn to show on one of them only. So both are looked at where it makes a difference.
 * Colours under full transparency are shown by nobody and stay out.
 */
export function findBackgrounds({ data, channels }: Raster): Background[] {
  if (channels === 3) return ['white']
  let transparency = 0
  for (let i = 3; i < data.length; i += 4) transparency += 255 - (data[i] ?? 0)
  const share = transparency / (255 * (data.length / 4))
  return share < minTransparentShare ? ['white'] : ['white', 'black']
}

/** RGB, in memory of its own: the raster may be a part of something large. */
export function flatten({ data, channels }: Raster, background: Background): Buffer {
  if (channels === 3) return Buffer.from(data)
  const behind = background === 'white' ? 255 : 0
  const flat = Buffer.allocUnsafe((data.length / 4) * 3)
  for (let from = 0, to = 0; from < data.length; from += 4, to += 3) {
    const alpha = data[from + 3] ?? 0
    const rest = behind * (255 - alpha) + 127
    flat[to] = ((data[from] ?? 0) * alpha + rest) / 255
    flat[to + 1] = ((data[from + 1] ?? 0) * alpha + rest) / 255
    flat[to + 2] = ((data[from + 2] ?? 0) * alpha + rest) / 255
  }
  return flat
}
