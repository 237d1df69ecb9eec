import sharp, { type Sharp } from 'sharp'

export type Colour = [red: number, green: number, blue: number]

/** Pixels of a harmless picture. */
export type Pixels = { width: number; height: number; channels: 3 | 4; data: Buffer }

export const red: Colour = [220, 30, 30]
export const green: Colour = [30, 200, 30]
export const blue: Colour = [30, 30, 220]
export const yellow: Colour = [230, 220, 40]

export function paint(width: number, height: number, colourAt: (x: number, y: number) => number[]): Pixels {
  const channels = colourAt(0, 0).length === 4 ? 4 : 3
  const data = Buffer.alloc(width * height * channels)
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = colourAt(x, y)
      for (let i = 0; i < channels; i++) data[at++] = colour[i] ?? 0
    }
  }
  return { width, height, channels, data }
}

/** A picture of one colour. */
export const paintPlain = (width: number, height: number, colour: number[]): Pixels => ({
  width,
  height,
  channels: colour.length === 4 ? 4 : 3,
  data: Buffer.alloc(width * height * colour.length, Buffer.from(colour)),
})

/** A picture whose rows repeat: row `y` equals the one `period` rows above it. Paints each of them once. */
export function paintRepeatedRows(
  { width, height, period }: { width: number; height: number; period: number },
  colourAt: (x: number, y: number) => number[],
): Pixels {
  const { channels, data } = paint(width, Math.min(period, height), colourAt)
  return { width, height, channels, data: Buffer.alloc(width * height * channels, data) }
}

/** A picture with another colour in each corner, which shows whether it was turned or mirrored. */
export function paintQuarters(width: number, height: number): Pixels {
  const toRow = (left: Colour, right: Colour) => paint(width, 1, (x) => (x < width / 2 ? left : right)).data
  const [upper, lower] = [toRow(red, green), toRow(blue, yellow)]
  const data = Buffer.concat(Array.from({ length: height }, (_, y) => (y < height / 2 ? upper : lower)))
  return { width, height, channels: 3, data }
}

/** Waves that move with `step`, like consecutive frames of a film. */
export function paintWaves(width: number, height: number, step: number): Pixels {
  const columns = Array.from({ length: width }, (_, x) => 60 * Math.sin((x + step) / 40))
  const data = Buffer.alloc(width * height * 3, 90)
  for (let y = 0, at = 0; y < height; y++) {
    const row = Math.cos(y / 30)
    for (let x = 0; x < width; x++, at += 3) {
      const wave = 128 + (columns[x] ?? 0) * row
      data[at] = wave
      data[at + 1] = wave * 0.9
    }
  }
  return { width, height, channels: 3, data }
}

export const toSharp = ({ width, height, channels, data }: Pixels): Sharp =>
  sharp(data, { raw: { width, height, channels }, limitInputPixels: false })

/** An animation of frames of the same size. */
export function toRoll(frames: Pixels[]): Sharp {
  const [{ width, height, channels } = { width: 1, height: 1, channels: 3 as const }] = frames
  const data = Buffer.concat(frames.map((frame) => frame.data))
  return sharp(data, { raw: { width, height: height * frames.length, channels, pageHeight: height } })
}

export function toRgba({ width, height, channels, data }: Pixels): Buffer {
  if (channels === 4) return data
  const rgba = Buffer.alloc(width * height * 4, 255)
  for (let from = 0, to = 0; from < data.length; from += 3, to += 4) {
    rgba[to] = data[from] ?? 0
    rgba[to + 1] = data[from + 1] ?? 0
    rgba[to + 2] = data[from + 2] ?? 0
  }
  return rgba
}

/** The colour at a position of a square; both coordinates are between 0 and 1. */
export function colourOf(square: Buffer, across: number, down: number): Colour {
  const side = Math.sqrt(square.length / 3)
  const at = (Math.floor(down * side) * side + Math.floor(across * side)) * 3
  return [square[at] ?? 0, square[at + 1] ?? 0, square[at + 2] ?? 0]
}

export const cornersOf = (square: Buffer): Colour[] =>
  [
    [0.25, 0.25],
    [0.75, 0.25],
    [0.25, 0.75],
    [0.75, 0.75],
  ].map(([across = 0, down = 0]) => colourOf(square, across, down))

export const isNear = (a: Colour, b: Colour, within = 16): boolean =>
  a.every((value, i) => Math.abs(value - (b[i] ?? 0)) <= within)
