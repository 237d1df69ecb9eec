import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { sharp } from '../sharp.ts'
import { readPngChunks, toPng } from './png.ts'
import { type Detail, newUnsupported, refuseErrors } from './render.ts'

/** Within this range a picture looks much the same with and without its gamma. */
const usualGamma = { least: 0.3, most: 0.7 }
const maxGammas = 2

/**
 * The unusual gammas that a PNG states. Browsers apply a gamma, libvips and many viewers do not, so an extreme value
 * makes one file show two pictures. Programs disagree on which of several statements holds and on what a colour profile
 * or a broken chunk overrules, so each stated value counts.
 */
export function findUnusualGammas(bytes: Buffer): number[] {
  const gammas = new Set<number>()
  for (const { type, data } of readPngChunks(bytes)) {
    if (type === 'IDAT') break
    if (type === 'gAMA' && data.length >= 4) gammas.add(data.readUInt32BE(0) / 100_000)
    if (type === 'cHRM' && data.length >= 32) checkPrimaries(data)
    if (type === 'cICP' && data.length >= 4) gammas.add(readTransfer(data))
  }
  const unusual = [...gammas].filter((gamma) => gamma > 0 && (gamma < usualGamma.least || gamma > usualGamma.most))
  if (unusual.length > maxGammas) throw newUnsupported(`${unusual.length} gammas`)
  return unusual
}

/** Transfer functions that are much like that of sRGB, and those that are not defined and therefore ignored. */
const usualTransfers = new Set([0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15, 17])
const linearTransfer = 8

/** The gamma that a code point stands for; 0 for none. Other curves, as of HDR, are refused: nothing here applies them. */
function readTransfer(data: Buffer): number {
  const transfer = data[1] ?? 0
  if (transfer === linearTransfer) return 1
  if (!usualTransfers.has(transfer)) throw newUnsupported(`transfer function ${transfer}`)
  return 0
}

/** Where red, green and blue of every common colour space lie: x and y, each from and to. */
const primaryAreas = [
  [0.55, 0.8, 0.2, 0.4],
  [0.1, 0.45, 0.5, 1],
  [0, 0.25, -0.1, 0.25],
] as const

/** Refuses primaries that swap or remove colours: browsers show another picture than viewers that ignore them. */
function checkPrimaries(data: Buffer) {
  const [, , ...values] = Array.from({ length: 8 }, (_, i) => data.readInt32BE(i * 4) / 100_000)
  // Decoders ignore primaries that are no triangle.
  if (values.every((value) => value === 0)) return
  for (const [i, [left, right, bottom, top]] of primaryAreas.entries()) {
    const [x = 0, y = 0] = [values[i * 2], values[i * 2 + 1]]
    if (x < left || x > right || y < bottom || y > top) throw newUnsupported('unusual primary colours')
  }
}

/** Mean difference of a channel from which on a profile shows another picture, not the same one in finer colours. */
const maxProfileEffect = 28
const maxKnown = 100
const known = new Map<string, boolean>()

/**
 * Whether a colour profile changes colours so much that viewers that apply it and those that ignore it show two
 * pictures. Tried on a cube of colours, once for each profile.
 */
export async function isUnusualProfile(profile: Buffer): Promise<boolean> {
  const key = createHash('sha256').update(profile).digest('hex')
  const found = known.get(key)
  if (found !== undefined) return found
  if (known.size >= maxKnown) known.clear()
  // Profiles of grey and printed pictures cannot be tried on the cube: both ways to show those are classified.
  const isRgb = profile.toString('latin1', 16, 20) === 'RGB '
  const isUnusual = !isRgb || (await measureProfile(profile)) > maxProfileEffect
  known.set(key, isUnusual)
  return isUnusual
}

const levels = [0, 51, 102, 153, 204, 255]

async function measureProfile(profile: Buffer): Promise<number> {
  const colours = levels.flatMap((red) => levels.flatMap((green) => levels.map((blue) => [red, green, blue])))
  const plain = Buffer.from(colours.flat())
  const card = toProfiledPng({ data: plain, width: colours.length, height: 1, channels: 3 }, profile)
  const shown = await showPng(card).catch(() => Buffer.alloc(0))
  if (shown.length !== plain.length) return Number.POSITIVE_INFINITY
  return plain.reduce((sum, value, i) => sum + Math.abs(value - (shown[i] ?? 0)), 0) / plain.length
}

/** Converts pixels from a colour profile to sRGB. */
export async function applyProfile(detail: Detail, profile: Buffer): Promise<Detail> {
  const data = await refuseErrors(() => showPng(toProfiledPng(detail, profile)))
  if (data.length !== detail.data.length) throw newUnsupported('a colour profile that changes the channels')
  return { ...detail, data }
}

const showPng = (png: Buffer) =>
  sharp(png, { failOn: 'none', limitInputPixels: false }).toColourspace('srgb').raw().toBuffer()

/** libvips takes a profile from a file only, so the pixels become one, without compression. */
function toProfiledPng({ data, width, height, channels }: Detail, profile: Buffer): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, channels === 4 ? 6 : 2], 8)
  const row = width * channels
  // Each row begins with the number of its filter, 0 for none.
  const rows = Buffer.alloc(height * (row + 1))
  for (let y = 0; y < height; y++) data.copy(rows, y * (row + 1) + 1, y * row, (y + 1) * row)
  return toPng([
    { type: 'IHDR', data: header },
    { type: 'iCCP', data: Buffer.concat([Buffer.from('p\0\0', 'latin1'), deflateSync(profile)]) },
    { type: 'IDAT', data: deflateSync(rows, { level: 0 }) },
    { type: 'IEND', data: Buffer.alloc(0) },
  ])
}
