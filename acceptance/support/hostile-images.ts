import { crc32, deflateSync } from 'node:zlib'

/** Pictures made byte by byte, because no image library writes them. All show plain colours only. */

type PngOptions = {
  width: number
  height: number
  /** 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha. */
  colour?: 0 | 2 | 3 | 4 | 6
  depth?: 8 | 16
  interlaced?: boolean
  /** Filtered rows before compression; zeros of the right length when missing. */
  rows?: Buffer
  /** Chunks between the header and the pixels. */
  before?: Buffer[]
  /** Chunks between the pixels and the end. */
  after?: Buffer[]
}

export function makePng(options: PngOptions): Buffer {
  const { width, height, colour = 0, depth = 8, interlaced = false, before = [], after = [] } = options
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([depth, colour, 0, 0, interlaced ? 1 : 0], 8)
  const pixelBytes = ({ 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }[colour] * depth) / 8
  const rows = options.rows ?? Buffer.alloc(countRowBytes(width, height, pixelBytes, interlaced))
  return Buffer.concat([
    pngSignature,
    pngChunk('IHDR', header),
    ...before,
    pngChunk('IDAT', deflateSync(rows, leastEffort)),
    ...after,
    pngChunk('IEND', Buffer.alloc(0)),
  ])
}

export function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

/** A PNG whose header claims any size and that has almost no pixels. */
export const makeHugePng = (side: number): Buffer => makePng({ width: side, height: side, rows: Buffer.alloc(1000) })

export type ApngFrame = {
  width: number
  height: number
  left?: number
  top?: number
  dispose?: 0 | 1 | 2
  blend?: 0 | 1
  /** RGBA pixels of the frame. */
  pixels: Buffer
}

/** Makes an animated PNG in RGBA. With `still` the default picture is not part of the animation. */
export function makeApng(
  canvas: { width: number; height: number; still?: Buffer; stated?: number },
  frames: ApngFrame[],
): Buffer {
  const { width, height, still } = canvas
  let sequence = 0
  const after: Buffer[] = []
  const before = [pngChunk('acTL', toBytes32(canvas.stated ?? frames.length, 0))]
  for (const [i, frame] of frames.entries()) {
    const { left = 0, top = 0, dispose = 0, blend = 0 } = frame
    const control = toBytes32(sequence++, frame.width, frame.height, left, top)
    const chunk = pngChunk('fcTL', Buffer.concat([control, Buffer.from([0, 1, 0, 10, dispose, blend])]))
    if (i === 0 && still === undefined) before.push(chunk)
    else {
      const data = deflateSync(toRows(frame.pixels, frame.width * 4), leastEffort)
      after.push(chunk, pngChunk('fdAT', Buffer.concat([toBytes32(sequence++), data])))
    }
  }
  const rows = toRows(still ?? frames[0]?.pixels ?? Buffer.alloc(width * height * 4), width * 4)
  return makePng({ width, height, colour: 6, rows, before, after })
}

export type GifFrame = {
  width: number
  height: number
  left?: number
  top?: number
  /** Index into the palette of black, white, red and green. */
  colour: 0 | 1 | 2 | 3
  transparent?: 0 | 1 | 2 | 3
  dispose?: 0 | 1 | 2 | 3
}

/** Makes a GIF in which each frame is one plain colour. */
export function makeGif(canvas: { width: number; height: number }, frames: GifFrame[]): Buffer {
  const header = Buffer.alloc(13)
  header.write('GIF89a', 'latin1')
  header.writeUInt16LE(canvas.width, 6)
  header.writeUInt16LE(canvas.height, 8)
  header[10] = 0x81
  const palette = Buffer.from([0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 255, 0])
  const pixels = new Map<string, Buffer>()
  const parts = frames.map(({ width, height, left = 0, top = 0, colour, transparent, dispose = 0 }) => {
    const isTransparent = transparent === undefined ? 0 : 1
    const control = Buffer.from([0x21, 0xf9, 4, (dispose << 2) | isTransparent, 10, 0, transparent ?? 0, 0])
    const place = Buffer.alloc(10)
    place[0] = 0x2c
    for (const [i, value] of [left, top, width, height].entries()) place.writeUInt16LE(value, 1 + i * 2)
    const key = `${width * height} ${colour}`
    const data = pixels.get(key) ?? toGifPixels(width * height, colour)
    pixels.set(key, data)
    return Buffer.concat([control, place, data])
  })
  return Buffer.concat([header, palette, ...parts, Buffer.from([0x3b])])
}

/** Makes a GIF that alternates between black and white. */
export const makeFlickeringGif = (width: number, height: number, frames: number): Buffer =>
  makeGif(
    { width, height },
    Array.from({ length: frames }, (_, i) => ({ width, height, colour: i % 2 === 0 ? 0 : 1 })),
  )

/** A grey progressive JPEG whose scans after the first are empty and take a few bytes each. */
export function makeManyScanJpeg(width: number, height: number, scans: number): Buffer {
  const quantisers = Buffer.concat([Buffer.from([0]), Buffer.alloc(64, 1)])
  const size = Buffer.from([8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0])
  const blocks = Math.ceil(width / 8) * Math.ceil(height / 8)
  // Each table has a single code, of one bit: no change of brightness, or the end of 16,384 blocks.
  const table = (kind: number, symbol: number) => Buffer.from([kind, 1, ...Array(15).fill(0), symbol])
  const first = Buffer.concat([jpegSegment(0xda, Buffer.from([1, 1, 0, 0, 0, 0])), Buffer.alloc(Math.ceil(blocks / 8))])
  const runs = Buffer.alloc(Math.ceil((Math.ceil(blocks / 16_384) * 15) / 8))
  const next = Buffer.concat([jpegSegment(0xda, Buffer.from([1, 1, 0, 1, 63, 0])), runs])
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    jpegSegment(0xdb, quantisers),
    jpegSegment(0xc2, size),
    jpegSegment(0xc4, table(0x00, 0)),
    jpegSegment(0xc4, table(0x10, 0xe0)),
    first,
    ...Array<Buffer>(scans - 1).fill(next),
    Buffer.from([0xff, 0xd9]),
  ])
}

/** Pictures in formats that the service does not support. */
export const makeOtherFormats = (): Record<string, Buffer> => ({
  svg: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'),
  tiff: makeTiff(),
  avif: makeIsoMedia('avif'),
  heic: makeIsoMedia('heic'),
  bmp: Buffer.concat([Buffer.from('BM'), Buffer.alloc(60, 1)]),
  pdf: Buffer.from('%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n'),
  text: Buffer.from('This is not a picture.'),
  empty: Buffer.alloc(0),
})

/** Headers without pixels. */
export const makeZeroSized = (): Record<string, Buffer> => ({
  png: makePng({ width: 0, height: 0 }),
  gif: makeGif({ width: 0, height: 0 }, [{ width: 0, height: 0, colour: 0 }]),
  jpeg: makeManyScanJpeg(0, 0, 1),
  webp: Buffer.from('RIFF\x16\0\0\0WEBPVP8 \x0a\0\0\0\x30\x01\0\x9d\x01\x2a\0\0\0\0', 'latin1'),
})

/** A file that reads as a picture from the front and as an archive from the back. */
export const withArchiveBehind = (picture: Buffer): Buffer =>
  Buffer.concat([picture, Buffer.from('PK\x05\x06'), Buffer.alloc(18)])

/** The lowest effort of compression: decoders show the same pixels with any. */
const leastEffort = { level: 1 }

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

function toBytes32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4)
  return bytes
}

/** Prefixes each row with filter type 0. */
export function toRows(pixels: Buffer, rowBytes: number): Buffer {
  const rows: Buffer[] = []
  for (let at = 0; at < pixels.length; at += rowBytes) rows.push(Buffer.of(0), pixels.subarray(at, at + rowBytes))
  return Buffer.concat(rows)
}

function countRowBytes(width: number, height: number, pixelBytes: number, interlaced: boolean): number {
  if (!interlaced) return (width * pixelBytes + 1) * height
  const passes = [
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
  ]
  return passes.reduce((sum, [left = 0, top = 0, across = 1, down = 1]) => {
    const [columns, lines] = [Math.ceil((width - left) / across), Math.ceil((height - top) / down)]
    return columns > 0 && lines > 0 ? sum + lines * (columns * pixelBytes + 1) : sum
  }, 0)
}

/** LZW of equal pixels: every code stands for the previous one and one more pixel. */
function toGifPixels(total: number, colour: number): Buffer {
  const bytes: number[] = []
  let [held, bits, width, next, run, left] = [0, 0, 3, 6, 1, total]
  const put = (code: number) => {
    held |= code << bits
    for (bits += width; bits >= 8; bits -= 8) {
      bytes.push(held & 255)
      held >>>= 8
    }
  }
  const clear = () => {
    put(4)
    ;[width, next, run] = [3, 6, 1]
  }
  clear()
  while (left > 0) {
    if (next === 4096) clear()
    const length = Math.min(run, left)
    put(length === 1 ? colour : 4 + length)
    left -= length
    // The decoder is one code behind after a clear.
    if (run > 1) next++
    if (next === 1 << width && width < 12) width++
    run++
  }
  put(5)
  if (bits > 0) bytes.push(held & 255)
  const blocks: Buffer[] = [Buffer.of(2)]
  for (let at = 0; at < bytes.length; at += 255) {
    const block = bytes.slice(at, at + 255)
    blocks.push(Buffer.of(block.length), Buffer.from(block))
  }
  return Buffer.concat([...blocks, Buffer.of(0)])
}

function jpegSegment(marker: number, data: Buffer): Buffer {
  const length = data.length + 2
  return Buffer.concat([Buffer.from([0xff, marker, length >> 8, length & 255]), data])
}

/** A picture of a single grey pixel. */
function makeTiff(): Buffer {
  const entries = [
    [256, 1],
    [257, 1],
    [258, 8],
    [259, 1],
    [262, 1],
    [273, 8],
    [277, 1],
    [278, 1],
    [279, 1],
  ]
  const bytes = Buffer.alloc(16 + 2 + entries.length * 12 + 4)
  bytes.write('II*\0', 'latin1')
  bytes.writeUInt32LE(16, 4)
  bytes[8] = 128
  bytes.writeUInt16LE(entries.length, 16)
  for (const [i, [tag = 0, value = 0]] of entries.entries()) {
    bytes.writeUInt16LE(tag, 18 + i * 12)
    bytes.writeUInt16LE(3, 20 + i * 12)
    bytes.writeUInt32LE(1, 22 + i * 12)
    bytes.writeUInt16LE(value, 26 + i * 12)
  }
  return bytes
}

function makeIsoMedia(brand: string): Buffer {
  const box = Buffer.from(`\0\0\0\x18ftyp${brand}\0\0\0\0mif1${brand}`, 'latin1')
  return Buffer.concat([box, Buffer.alloc(64)])
}
