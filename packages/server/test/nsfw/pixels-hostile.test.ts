import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { before, describe, it } from 'node:test'
import {
  makeApng,
  makeFlickeringGif,
  makeHugePng,
  makeManyScanJpeg,
  makeOtherFormats,
  makePng,
  makeZeroSized,
} from '../../../../acceptance/support/hostile-images.ts'
import { smallShape } from '../../src/engines/nsfw/models/model.ts'
import { findRegions } from '../../src/engines/nsfw/pixels/regions.ts'
import { Refusal } from '../../src/engines/nsfw/pixels/render.ts'
import { paintWaves, toSharp } from './image-samples.ts'
import { type OpenedView, openViews } from './open-views.ts'
import { makeNoise } from './own-model-samples.ts'

describe('pictures that are none', () => {
  for (const [name, bytes] of Object.entries(makeOtherFormats())) {
    it(`${name} is refused`, () => assertUnscanned(bytes, 'UnsupportedImage'))
  }

  for (const [name, bytes] of Object.entries(makeZeroSized())) {
    it(`${name} without pixels is refused`, () => assertUnscanned(bytes, 'UnsupportedImage'))
  }

  it('other formats behind the first bytes of ours are refused', async () => {
    const heads = [
      Buffer.from([0xff, 0xd8, 0xff, 0xe0]),
      Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
      Buffer.from('GIF89a'),
      Buffer.from('RIFF\0\0\0\0WEBP'),
    ]
    const tails = [
      ...Object.values(makeOtherFormats()),
      await toSharp(paintWaves(50, 50, 0))
        .tiff()
        .toBuffer(),
    ]
    for (const head of heads) {
      for (const tail of tails) {
        const answer = await openViews(Buffer.concat([head, tail]))
        assert.ok('unscanned' in answer && answer.unscanned === 'UnsupportedImage')
      }
    }
  })

  it('a picture cut after its first bytes is refused', async () => {
    for (const format of ['jpeg', 'png', 'gif', 'webp'] as const) {
      const bytes = await toSharp(paintWaves(300, 200, 0))
        [format]()
        .toBuffer()
      await assertUnscanned(bytes.subarray(0, 12), 'UnsupportedImage')
    }
  })

  it('a PNG whose pixels are noise is refused, not guessed', async () => {
    const bytes = makePng({ width: 200, height: 200, rows: Buffer.alloc(40_200, 7) })
    bytes.fill(0xab, bytes.indexOf('IDAT') + 6, bytes.indexOf('IDAT') + 30)
    await assertUnscanned(bytes, 'UnsupportedImage')
  })
})

describe('pictures that take too much', () => {
  const tooMuch: Record<string, () => Buffer> = {
    'a PNG of 50,000 x 50,000': () => makeHugePng(50_000),
    'a PNG of 9,000,000 x 1': () => makePng({ width: 9_000_000, height: 1 }),
    'a column of ten million rows': () => makePng({ width: 1, height: 10_000_000 }),
    'an interlaced PNG beyond what may be held': () =>
      makePng({ width: 7_000, height: 7_000, colour: 6, interlaced: true, rows: Buffer.alloc(10) }),
    'a GIF of 10,000 frames': () => makeFlickeringGif(1, 1, 10_000),
    'a GIF of few frames that are large': () => makeFlickeringGif(3_000, 3_000, 15),
    'a GIF of frames that are one pixel wide': () => makeFlickeringGif(1, 65_535, 250),
    'a GIF of frames that are one pixel high': () => makeFlickeringGif(65_535, 1, 250),
    'a GIF of a huge canvas': () => makeFlickeringGif(5_000, 5_000, 2),
    'a JPEG of 2,000 scans': () => makeManyScanJpeg(500, 500, 2_000),
    'a large JPEG of 50 scans': () => makeManyScanJpeg(6_000, 6_000, 50),
    'an APNG of 501 frames': () =>
      makeApng(
        { width: 1, height: 1 },
        Array.from({ length: 501 }, () => ({ width: 1, height: 1, pixels: Buffer.alloc(4, 255) })),
      ),
  }
  for (const [name, make] of Object.entries(tooMuch)) {
    it(`${name} is refused from its header`, async () => {
      const bytes = make()
      const before = process.cpuUsage()
      await assertUnscanned(bytes, 'ScanLimitExceeded')
      const { user, system } = process.cpuUsage(before)
      assert.ok(user + system < 2_000_000, 'it was decoded')
    })
  }

  const heavy: Record<string, () => Buffer> = {
    'a PNG bomb of 49 megapixels': () => makePng({ width: 7_000, height: 7_000 }),
    'an interlaced PNG of 36 megapixels': () => makePng({ width: 6_000, height: 6_000, colour: 2, interlaced: true }),
    'a JPEG of 100 scans': () => makeManyScanJpeg(2_000, 2_000, 100),
    'a GIF of 500 frames': () => makeFlickeringGif(200, 200, 500),
    'a narrow GIF of 300 frames': () => makeFlickeringGif(120, 600, 300),
  }
  // One process for all: its memory never shrinks, so that the last picture is measured with the largest before it.
  const measured = Promise.withResolvers<Measured[]>()
  before(() => measured.resolve(measure(Object.values(heavy).map((make) => make()))))
  for (const [i, name] of Object.keys(heavy).entries()) {
    it(`${name} is scanned in bounded time and memory`, async () => {
      const { frames = 0, seconds = 0, megabytes = 0 } = (await measured.promise)[i] ?? {}
      assert.ok(frames > 0)
      assert.ok(seconds < 20, `${seconds} seconds of a core`)
      assert.ok(megabytes < 400, `${megabytes} MB`)
    })
  }
})

describe('parts of pictures with random changes', () => {
  it('are cut or refused, also of second pictures and thumbnails', async () => {
    const [jpeg, png, gif] = await Promise.all([
      toSharp(paintWaves(330, 300, 0))
        .jpeg()
        .toBuffer(),
      toSharp(paintWaves(130, 90, 3))
        .png()
        .toBuffer(),
      toSharp(paintWaves(60, 200, 5))
        .gif()
        .toBuffer(),
    ])
    const whole = Buffer.concat([jpeg, png, jpeg.subarray(0, jpeg.length >> 1), gif])
    const noise = makeNoise(11)
    const next = () => (noise() + 1) / 2
    let seen = 0
    for (let round = 0; round < 15; round++) {
      const bytes = Buffer.from(whole)
      for (let change = 0; change <= round % 12; change++) {
        bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256)
      }
      const picture = await openViews(bytes, { allSizes: round % 5 === 0 })
      if ('unscanned' in picture) continue
      for (const view of picture.views) seen += await countParts(view)
    }
    assert.ok(seen > 50, `${seen} parts`)
  })

  it('lie within the picture, whatever its pixels and proportions are', () => {
    const noise = makeNoise(5)
    const next = () => (noise() + 1) / 2
    const sizes = [1, 2, 31, 32, 33, 224, 449, 5_000, 65_535]
    for (let round = 0; round < 40; round++) {
      const step = 1 + Math.floor(next() * 90)
      const shades = Array.from({ length: 9 }, () => Math.floor(next() * 256))
      const pixels = Buffer.alloc(224 * 224 * 3)
      for (let y = 0, at = 0; y < 224; y++) {
        for (let x = 0; x < 224; x++) {
          const shade = shades[(Math.floor(x / step) + Math.floor(y / step) * 2) % 9] ?? 0
          for (const end = at + 3; at < end; at++) pixels[at] = shade + (at % 7)
        }
      }
      const pick = () => sizes[Math.floor(next() * sizes.length)] ?? 1
      const size = { width: pick(), height: pick() }
      for (const { left, top, width, height } of findRegions(pixels, size)) {
        const isWithin = left >= 0 && top >= 0 && left + width < 1.0001 && top + height < 1.0001
        assert.ok(isWithin && width > 0 && height > 0, JSON.stringify({ left, top, width, height, size }))
      }
    }
  })
})

/** Renders all parts of a view; those that cannot be decoded count for none. */
async function countParts(view: OpenedView): Promise<number> {
  try {
    const { views } = await view.readParts({ isCloser: true, hasTilesBesideParts: false })
    for (const part of views) assert.equal((await part.render(smallShape)).length, 224 * 224 * 3)
    return views.length
  } catch (error) {
    if (error instanceof Refusal) return 0
    throw error
  }
}

async function assertUnscanned(bytes: Buffer, expected: string) {
  const answer = await openViews(bytes)
  assert.ok('unscanned' in answer, 'it was scanned')
  assert.equal(answer.unscanned, expected, answer.reason)
  assert.notEqual(answer.reason, '')
}

type Measured = { frames: number; seconds: number; megabytes: number }

/** Opens the pictures in a process of their own, so that the memory of the test process does not count. */
async function measure(pictures: Buffer[]): Promise<Measured[]> {
  const module = new URL('open-views.ts', import.meta.url).href
  const script = `
    import { openViews } from ${JSON.stringify(module)}
    import { buffer } from 'node:stream/consumers'
    const bytes = await buffer(process.stdin)
    const measured = []
    let at = 0
    for (const length of ${JSON.stringify(pictures.map((bytes) => bytes.length))}) {
      const before = process.cpuUsage()
      const picture = await openViews(bytes.subarray(at, (at += length)))
      const { user, system } = process.cpuUsage(before)
      const megabytes = process.resourceUsage().maxRSS / 1024
      measured.push({ frames: picture.views?.length ?? 0, seconds: (user + system) / 1e6, megabytes })
    }
    console.log(JSON.stringify(measured))
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(Buffer.concat(pictures))
  return JSON.parse(await text(child.stdout))
}
