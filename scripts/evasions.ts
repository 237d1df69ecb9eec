import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { deflateSync } from 'node:zlib'
import sharp, { type Sharp } from 'sharp'
import { makeSteeredJpeg } from '../acceptance/support/steered-jpeg.ts'
import { toPng } from '../packages/server/src/engines/nsfw/pixels/png.ts'
import { openProfiles } from './open-profiles.ts'
import { drawScene, side, surroundings } from './scenes.ts'

/**
 * `node scripts/evasions.ts [profile...]` hides a harmless picture that the models take for pornography in each of the
 * ways that people use, and prints which profile finds it. `--write DIR` writes the pictures to a directory instead,
 * for another version of Assay.
 */
const { values, positionals } = parseArgs({ allowPositionals: true, options: { write: { type: 'string' } } })
const offending = await readFile(new URL('../acceptance/support/pictures/stand-in.jpg', import.meta.url))

const stretch = (width: number, height: number) => sharp(offending).resize(width, height, { fit: 'fill' })

type Placed = { input: Buffer; left: number; top: number }

const compose = (width: number, height: number, placed: Placed[], background = '#ffffff') =>
  sharp({ create: { width, height, channels: 3, background } }).composite(placed)

async function makeCollage(rows: number, columns: number, gutter: number): Promise<Buffer> {
  const panel = 240
  const placed: Placed[] = []
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const isLast = row === rows - 1 && column === columns - 1
      const picture = isLast ? stretch(panel, panel) : drawScene(row * columns + column + 1, panel, panel)
      const input = await picture.png().toBuffer()
      placed.push({ input, left: column * (panel + gutter), top: row * (panel + gutter) })
    }
  }
  const [width, height] = [columns, rows].map((count) => count * panel + (count - 1) * gutter)
  return compose(width ?? panel, height ?? panel, placed)
    .jpeg({ quality: 90 })
    .toBuffer()
}

async function makeBorder(share: number, background: string): Promise<Buffer> {
  const by = Math.round(side * share)
  const input = await stretch(side, side).png().toBuffer()
  return compose(side + 2 * by, side + 2 * by, [{ input, left: by, top: by }], background)
    .jpeg({ quality: 90 })
    .toBuffer()
}

/** The picture in the middle of other content, or in its corner. */
async function makeInset(around: string, share: number, isInCorner = false): Promise<Buffer> {
  const width = Math.round(side / share)
  const at = isInCorner ? width - side : Math.round((width - side) / 2)
  const [base, input] = [await surroundings[around]?.(width), await stretch(side, side).png().toBuffer()]
  return sharp(base)
    .composite([{ input, left: at, top: at }])
    .jpeg({ quality: 90 })
    .toBuffer()
}

async function makeStrip(squares: number, isTall: boolean): Promise<Buffer> {
  const input = await stretch(240, 240).png().toBuffer()
  const [width, height] = isTall ? [240, 240 * squares] : [240 * squares, 240]
  const scene = await drawScene(5, width, height).png().toBuffer()
  const at = Math.floor((squares - 1) / 2) * 240
  const placed = { input, left: isTall ? 0 : at, top: isTall ? at : 0 }
  return sharp(scene).composite([placed]).jpeg({ quality: 90 }).toBuffer()
}

type Chunk = { type: string; data: Buffer }

/** The value of 16 bits that a viewer shows as the given one of 8 bits. */
const toStored = (value: number, gamma: number) => Math.round(65_535 * (value / 255) ** (2.2 * gamma))

/** The least value of 8 bits that 16 bits hold finely enough under a gamma. */
const toLeast = (gamma: number) => 255 * (8 / 65_535) ** (1 / (2.2 * gamma))

/**
 * A PNG of 16 bits whose picture shows only after its gamma is applied. Dark tones become lighter, because 16 bits do
 * not hold them under a high gamma.
 */
async function makeGammaPng(more: Chunk[], gamma = 2): Promise<Buffer> {
  const pixels = await stretch(side, side).removeAlpha().raw().toBuffer()
  const least = gamma < 1 ? 0 : toLeast(gamma)
  const toLight = (value: number) => least + ((255 - least) * value) / 255
  return makeWidePng(side, gamma, more, (at) => toStored(toLight(pixels[at] ?? 0), gamma))
}

const dots = 6

/** The same with all tones: pixels are black or light, and their share is the tone. */
async function makeDottedPng(gamma: number): Promise<Buffer> {
  const pixels = await stretch(side, side).removeAlpha().raw().toBuffer()
  const light = toStored(Math.max(200, toLeast(gamma)), gamma)
  // Steps of 7 among 36 places put places that follow each other far apart.
  const order = Array.from({ length: dots * dots }, (_, i) => (i * 7) % (dots * dots))
  return makeWidePng(side * dots, gamma, [], (at) => {
    const [x, y] = [Math.floor(at / 3) % (side * dots), Math.floor(at / 3 / (side * dots))]
    const tone = pixels[(Math.floor(y / dots) * side + Math.floor(x / dots)) * 3 + (at % 3)] ?? 0
    const place = order[(y % dots) * dots + (x % dots)] ?? 0
    return (tone / 255) * dots * dots > place + 0.5 ? light : 0
  })
}

/** A square PNG of 16 bits with a gamma. */
function makeWidePng(width: number, gamma: number, more: Chunk[], valueAt: (at: number) => number): Buffer {
  const row = 1 + width * 6
  const rows = Buffer.alloc(width * row)
  for (let y = 0, at = 0; y < width; y++) {
    for (let i = 0; i < width * 3; i++, at++) rows.writeUInt16BE(valueAt(at), y * row + 1 + i * 2)
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(width, 4)
  header.set([16, 2], 8)
  const colours = [{ type: 'gAMA', data: toUint(gamma * 100_000) }, ...more]
  const data = deflateSync(rows)
  return toPng([
    { type: 'IHDR', data: header },
    ...colours,
    { type: 'IDAT', data },
    { type: 'IEND', data: Buffer.alloc(0) },
  ])
}

function toUint(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Pixels of one picture, with an alpha channel for each of them. */
async function makeAlpha(toPixel: (red: number, green: number, blue: number) => number[]): Promise<Buffer> {
  const pixels = await stretch(side, side).removeAlpha().raw().toBuffer()
  const data = Buffer.alloc(side * side * 4)
  for (let i = 0; i < side * side; i++) {
    data.set(toPixel(pixels[i * 3] ?? 0, pixels[i * 3 + 1] ?? 0, pixels[i * 3 + 2] ?? 0), i * 4)
  }
  return sharp(data, { raw: { width: side, height: side, channels: 4 } })
    .png()
    .toBuffer()
}

/** Each colour as the least of it that must be opaque, over a background that shows the rest. */
const overWhite = (...colour: number[]) => {
  const alpha = 255 - Math.min(...colour)
  return [...colour.map((value) => (alpha === 0 ? 0 : Math.max(0, 255 - ((255 - value) * 255) / alpha))), alpha]
}
const overBlack = (...colour: number[]) => {
  const alpha = Math.max(...colour)
  return [...colour.map((value) => (alpha === 0 ? 0 : (value * 255) / alpha)), alpha]
}

async function makeAnimation(frames: number, at: number, delay: number): Promise<Buffer> {
  const rolls: Buffer[] = []
  for (let i = 0; i < frames; i++) {
    const frame = i === at ? stretch(side, side) : drawScene(i % 40, side, side)
    rolls.push(await frame.removeAlpha().raw().toBuffer())
  }
  const raw = { width: side, height: side * frames, channels: 3 as const, pageHeight: side }
  return sharp(Buffer.concat(rolls), { raw })
    .webp({ quality: 90, effort: 0, delay: Array.from({ length: frames }, () => delay) })
    .toBuffer()
}

/** Large frames, because 256 colours dither a small one so much that the models see another picture. */
async function makeGif(frames: number, at: number): Promise<Buffer> {
  const gifSide = 900
  const rolls: Buffer[] = []
  for (let i = 0; i < frames; i++) {
    const frame = i === at ? stretch(gifSide, gifSide) : drawScene(i, gifSide, gifSide)
    rolls.push(await frame.removeAlpha().raw().toBuffer())
  }
  const raw = { width: gifSide, height: gifSide * frames, channels: 3 as const, pageHeight: gifSide }
  return sharp(Buffer.concat(rolls), { raw })
    .gif({ effort: 1, interPaletteMaxError: 0, delay: Array.from({ length: frames }, () => 10) })
    .toBuffer()
}

/** Shows one picture when it is decoded in full, and another one at smaller sizes. */
async function makeSteered(isInFull: boolean, blocks = 224): Promise<Buffer> {
  const toBlocks = async (picture: Sharp) => ({ side: blocks, pixels: await picture.removeAlpha().raw().toBuffer() })
  const [bad, good] = [await toBlocks(stretch(blocks, blocks)), await toBlocks(drawScene(3, blocks, blocks))]
  return makeSteeredJpeg(isInFull ? { inFull: bad, small: good } : { inFull: good, small: bad })
}

/** A JPEG with a thumbnail of its own in the second directory of its EXIF block. */
async function makeThumbnail(): Promise<Buffer> {
  const host = await drawScene(3).jpeg().toBuffer()
  const thumbnail = await stretch(160, 160).jpeg().toBuffer()
  const tiff = Buffer.alloc(8 + 2 + 4 + 2 + 3 * 12 + 4)
  tiff.write('II*\0\b\0\0\0', 0, 'latin1')
  tiff.writeUInt32LE(14, 10)
  tiff.writeUInt16LE(3, 14)
  const entries = [
    [0x0103, 3, 1, 6],
    [0x0201, 4, 1, tiff.length],
    [0x0202, 4, 1, thumbnail.length],
  ]
  for (const [i, [tag = 0, type = 0, count = 0, value = 0]] of entries.entries()) {
    tiff.writeUInt16LE(tag, 16 + i * 12)
    tiff.writeUInt16LE(type, 18 + i * 12)
    tiff.writeUInt32LE(count, 20 + i * 12)
    tiff.writeUInt32LE(value, 24 + i * 12)
  }
  const body = Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiff, thumbnail])
  const head = Buffer.from([0xff, 0xd8, 0xff, 0xe1, (body.length + 2) >> 8, (body.length + 2) & 255])
  return Buffer.concat([head, body, host.subarray(2)])
}

const append = async (host: Promise<Buffer>, more: Promise<Buffer>) => Buffer.concat([await host, await more])
const turn = (degrees: number) => stretch(side, side).rotate(degrees).jpeg({ quality: 95 })

const evasions: Record<string, () => Promise<Buffer>> = {
  'The picture itself': async () => offending,
  ...Object.fromEntries(
    [0, 2, 10].flatMap((gutter) =>
      [
        [1, 2],
        [2, 2],
        [2, 3],
        [3, 3],
        [4, 4],
      ].map(([rows = 1, columns = 1]) => {
        return [`Collage ${rows} x ${columns}, gutter ${gutter} px`, () => makeCollage(rows, columns, gutter)]
      }),
    ),
  ),
  'Border of 25 %, white': () => makeBorder(0.25, '#ffffff'),
  'Border of 60 %, black': () => makeBorder(0.6, '#000000'),
  ...Object.fromEntries(
    Object.keys(surroundings).flatMap((around) => [
      [`On ${around}, 60 % of its sides`, () => makeInset(around, 0.6)],
      [`On ${around}, 35 % of its sides, in a corner`, () => makeInset(around, 0.35, true)],
    ]),
  ),
  'Strip 4:1': () => makeStrip(4, false),
  'Strip 1:9': () => makeStrip(9, true),
  'Gamma 2': () => makeGammaPng([]),
  'Gamma 3': () => makeGammaPng([], 3),
  'Gamma 4': () => makeGammaPng([], 4),
  'Gamma 2, in dots': () => makeDottedPng(2),
  'Gamma 4, in dots': () => makeDottedPng(4),
  'Gamma 20, in dots': () => makeDottedPng(20),
  'Gamma 0.1': () => makeGammaPng([], 0.1),
  'Gamma 2, and a second gAMA': () => makeGammaPng([{ type: 'gAMA', data: toUint(45_455) }]),
  'Gamma 2, broken iCCP': () => makeGammaPng([{ type: 'iCCP', data: Buffer.from('x\0\0broken', 'latin1') }]),
  'Gamma 2, empty sRGB': () => makeGammaPng([{ type: 'sRGB', data: Buffer.alloc(0) }]),
  'Gamma 2, cICP of zeros': () => makeGammaPng([{ type: 'cICP', data: Buffer.alloc(4) }]),
  'Alpha, shows on white': () => makeAlpha(overWhite),
  'Alpha, shows on black': () => makeAlpha(overBlack),
  'Alpha, fully transparent': () => makeAlpha((...colour) => [...colour, 0]),
  'EXIF thumbnail': makeThumbnail,
  'Second picture behind the first (MPO)': () =>
    append(drawScene(3).jpeg().toBuffer(), stretch(side, side).jpeg().toBuffer()),
  'PNG behind a JPEG': () => append(drawScene(3).jpeg().toBuffer(), stretch(side, side).png().toBuffer()),
  'JPEG behind a PNG': () => append(drawScene(3).png().toBuffer(), stretch(side, side).jpeg().toBuffer()),
  'EXIF turns it upright': () => turn(270).withMetadata({ orientation: 6 }).toBuffer(),
  'EXIF turns it away': () => stretch(side, side).withMetadata({ orientation: 6 }).jpeg({ quality: 95 }).toBuffer(),
  'Turned by 90 degrees': () => turn(90).toBuffer(),
  'Turned by 180 degrees': () => turn(180).toBuffer(),
  'JPEG that shows it in full size only': () => makeSteered(true),
  'JPEG that shows it in small sizes only': () => makeSteered(false),
  'The same in full size, 704 px': () => makeSteered(true, 88),
  'The same in small sizes, 704 px': () => makeSteered(false, 88),
  'GIF of 8 frames of 10 ms, the first': () => makeGif(8, 0),
  'GIF of 8 frames of 10 ms, number 5': () => makeGif(8, 4),
  'GIF of 8 frames of 10 ms, the last': () => makeGif(8, 7),
  'Animation of 40 frames, the first': () => makeAnimation(40, 0, 100),
  'Animation of 40 frames, number 20': () => makeAnimation(40, 20, 100),
  'Animation of 40 frames, the last': () => makeAnimation(40, 39, 100),
  'Animation of 60 frames, one for 10 ms': () => makeAnimation(60, 33, 10),
}

// All are made before the first is opened, which turns off the loader that draws the scenes.
const samples: [string, Buffer][] = []
for (const [name, make] of Object.entries(evasions)) samples.push([name, await make()])
if (values.write !== undefined) {
  await mkdir(values.write, { recursive: true })
  for (const [name, bytes] of samples) await writeFile(join(values.write, encodeURIComponent(name)), bytes)
  process.exit()
}
const opened = await openProfiles(positionals)
process.stdout.write(`| Evasion | ${opened.map(({ profile }) => profile).join(' | ')} |\n`)
process.stdout.write(`| --- |${' --- |'.repeat(opened.length)}\n`)
for (const [name, bytes] of samples) {
  const cells: string[] = []
  for (const { scan } of opened) {
    const { status, score } = await scan(bytes)
    const words = { threat: 'found', error: 'error', clean: 'missed' }
    cells.push(status === 'error' ? words.error : `${words[status as 'threat' | 'clean']} (${score.toFixed(2)})`)
  }
  process.stdout.write(`| ${name} | ${cells.join(' | ')} |\n`)
}
