import { readPng } from './damaged-png.ts'
import type { FrameSource } from './frame-source.ts'
import { readPngChunks } from './png-chunks.ts'
import { attempt, openSharp, type Raster, type Shape } from './render.ts'

/** Between these a picture looks much the same with and without. */
const usual = { least: 0.3, most: 0.7 }

/**
 * A PNG may say how bright its numbers are meant. Browsers follow it, libvips and many viewers do not; by an extreme
 * value one file shows two pictures. Undefined when the value is missing, usual, or overruled by a colour profile.
 */
export function findUnusualGamma(bytes: Buffer): number | undefined {
  let gamma: number | undefined
  for (const { type, data } of readPngChunks(bytes)) {
    if (type === 'sRGB' || type === 'iCCP' || type === 'cICP') return undefined
    if (type === 'gAMA' && data.length === 4) gamma = data.readUInt32BE(0) / 100_000
    if (type === 'IDAT') break
  }
  if (gamma === undefined || gamma === 0 || (gamma >= usual.least && gamma <= usual.most)) return undefined
  return gamma
}

/** The picture as a browser shows it. In 16 bits, because the hidden one may live in the lowest of them. */
export function makeGammaFrames(bytes: Buffer, gamma: number): FrameSource {
  const exponent = 1 / (2.2 * gamma)
  const curve = Uint8Array.from({ length: 65_536 }, (_, value) => Math.round(255 * (value / 65_535) ** exponent))

  const read = async (_first: number, _count: number, { side, kernel }: Shape): Promise<Raster[]> => {
    const wide = await readPng({ bytes }, (source) => {
      const pipeline = openSharp(source).resize(side, side, { fit: 'fill', kernel }).ensureAlpha()
      return attempt(() => pipeline.toColourspace('rgb16').raw({ depth: 'ushort' }).toBuffer())
    })
    const values = new Uint16Array(wide.buffer, wide.byteOffset, wide.length / 2)
    const data = Buffer.from(Uint8Array.from(values, (value, i) => (i % 4 === 3 ? value >> 8 : (curve[value] ?? 0))))
    return [{ data, channels: 4 }]
  }

  return { frames: 1, framesPerPass: 1, heldBytes: 0, read }
}
