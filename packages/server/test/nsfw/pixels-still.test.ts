import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import sharp from 'sharp'
import { makePng, pngChunk, toRows, withArchiveBehind } from '../../../../acceptance/support/hostile-images.ts'
import { largeShape } from '../../src/engines/nsfw/models/model.ts'
import type { OpenOptions } from '../../src/engines/nsfw/pixels/open-picture.ts'
import {
  blue,
  type Colour,
  colourOf,
  cornersOf,
  green,
  isNear,
  type Pixels,
  paint,
  paintPlain,
  paintQuarters,
  paintRepeatedRows,
  paintWaves,
  red,
  toSharp,
  yellow,
} from './image-samples.ts'
import { type OpenedView, openViews } from './open-views.ts'

const quarters = [red, green, blue, yellow]

async function open(bytes: Buffer, options: OpenOptions = {}): Promise<OpenedView[]> {
  const picture = await openViews(bytes, options)
  if ('unscanned' in picture) assert.fail(`${picture.unscanned}: ${picture.reason}`)
  assert.equal(picture.isAnimated, false)
  return picture.views
}

async function openOne(bytes: Buffer): Promise<OpenedView> {
  const [frame, ...others] = await open(bytes)
  assert.ok(frame)
  assert.equal(others.length, 0)
  assert.equal(frame.index, 0)
  assert.equal(frame.small.length, 224 * 224 * 3)
  return frame
}

function assertCorners(square: Buffer, expected: Colour[], within?: number) {
  for (const [i, corner] of cornersOf(square).entries()) {
    assert.ok(isNear(corner, expected[i] ?? red, within), `corner ${i} is ${corner}, not ${expected[i]}`)
  }
}

/** Converts the four colours to CMYK once and then enlarges them: a conversion of every pixel takes 10 times as long. */
async function toCmykQuarters({ width, height }: Pixels): Promise<Buffer> {
  const small = toSharp(paintQuarters(2, 2)).toColourspace('cmyk').jpeg({ quality: 100, chromaSubsampling: '4:4:4' })
  return sharp(await small.toBuffer())
    .pipelineColourspace('cmyk')
    .resize(width, height, { fit: 'fill', kernel: 'nearest' })
    .toColourspace('cmyk')
    .jpeg()
    .toBuffer()
}

const leastEffort = { jpeg: {}, png: { compressionLevel: 1 }, webp: { effort: 0 }, gif: { effort: 1 } }

/** Formats with the least effort that their encoders know: what a decoder shows does not depend on it. */
const encoders: Record<string, (pixels: Pixels) => Promise<Buffer>> = {
  'a JPEG': (pixels) => toSharp(pixels).jpeg({ chromaSubsampling: '4:4:4' }).toBuffer(),
  'a progressive JPEG': (pixels) => toSharp(pixels).jpeg({ progressive: true }).toBuffer(),
  'a PNG': (pixels) => toSharp(pixels).png().toBuffer(),
  'an interlaced PNG': (pixels) => toSharp(pixels).png({ progressive: true }).toBuffer(),
  'a palette PNG': (pixels) => toSharp(pixels).png({ palette: true, colours: 8, effort: 1 }).toBuffer(),
  'a 16-bit PNG': (pixels) => toSharp(pixels).toColourspace('rgb16').png().toBuffer(),
  'a WebP': (pixels) => toSharp(pixels).webp({ effort: 0 }).toBuffer(),
  'a lossless WebP': (pixels) => toSharp(pixels).webp({ lossless: true, effort: 0 }).toBuffer(),
  'a GIF': (pixels) => toSharp(pixels).gif({ effort: 1 }).toBuffer(),
  'a CMYK JPEG': toCmykQuarters,
  'a JPEG in another colour space': (pixels) =>
    toSharp(pixels).withIccProfile('p3').jpeg({ chromaSubsampling: '4:4:4' }).toBuffer(),
}

describe('still pictures', () => {
  for (const [name, encode] of Object.entries(encoders)) {
    for (const [width, height] of [
      [40, 30],
      [224, 224],
      [900, 640],
      [1300, 310],
    ] as const) {
      it(`${name} of ${width} x ${height} is squashed into both squares`, async () => {
        const within = name.includes('CMYK') ? 90 : 16
        const frame = await openOne(await encode(paintQuarters(width, height)))
        assertCorners(frame.small, quarters, within)
        const large = await frame.render(largeShape)
        assert.equal(large.length, 299 * 299 * 3)
        assertCorners(large, quarters, within)
      })
    }
  }

  it('a grey picture has three equal channels', async () => {
    const half = paint(300, 200, (x) => (x < 150 ? [40, 40, 40] : [200, 200, 200]))
    for (const bytes of [
      await toSharp(half).greyscale().jpeg().toBuffer(),
      await toSharp(half).greyscale().png().toBuffer(),
      await toSharp(half).toColourspace('grey16').png().toBuffer(),
    ]) {
      const { small } = await openOne(bytes)
      assert.ok(isNear(colourOf(small, 0.25, 0.5), [40, 40, 40], 4))
      assert.ok(isNear(colourOf(small, 0.75, 0.5), [200, 200, 200], 4))
    }
  })

  it('a picture is averaged, so that no sparse pixels can stand for it', async () => {
    for (const side of [672, 900, 2240]) {
      // Every third, fourth or tenth pixel, as programs take it that only sample.
      const step = Math.round(side / 224)
      const size = { width: side, height: side, period: step }
      const sparse = toSharp(
        paintRepeatedRows(size, (x, y) => (x % step === step >> 1 && y % step === step >> 1 ? red : blue)),
      )
      for (const [encode, bytes] of [
        ['png', await sparse.clone().png({ compressionLevel: 1 }).toBuffer()],
        ['webp', await sparse.clone().webp({ lossless: true, effort: 0 }).toBuffer()],
      ] as const) {
        const [frame] = await open(bytes)
        assert.ok(frame !== undefined && isNear(colourOf(frame.small, 0.5, 0.5), blue, 60), `${encode} of ${side}`)
        assert.ok(isNear(colourOf(await frame.render(largeShape), 0.5, 0.5), blue, 60), `${encode} of ${side}`)
      }
    }
  })

  it('one pixel and very narrow pictures are scanned', async () => {
    for (const [width, height] of [
      [1, 1],
      [1, 3000],
      [3000, 1],
      [3, 2],
    ] as const) {
      const whole = paintPlain(width, height, green)
      for (const encode of ['jpeg', 'png', 'webp', 'gif'] as const) {
        const { small, render } = await openOne(await toSharp(whole)[encode](leastEffort[encode]).toBuffer())
        assert.ok(isNear(colourOf(small, 0.5, 0.5), green), `${encode} ${width} x ${height}`)
        assert.ok(isNear(colourOf(await render(largeShape), 0.5, 0.5), green), `${encode} ${width} x ${height}`)
      }
    }
  })

  it('the orientation a camera notes is applied, whichever of the eight it is', async () => {
    const [a, b, c, d] = [red, green, blue, yellow]
    const upright: Record<number, Colour[]> = {
      1: [a, b, c, d],
      2: [b, a, d, c],
      3: [d, c, b, a],
      4: [c, d, a, b],
      5: [a, c, b, d],
      6: [c, a, d, b],
      7: [d, b, c, a],
      8: [b, d, a, c],
    }
    for (const [orientation, corners] of Object.entries(upright)) {
      const stored = toSharp(paintQuarters(320, 230)).withMetadata({ orientation: Number(orientation) })
      const [frame, asStored] = await open(await stored.jpeg({ chromaSubsampling: '4:4:4' }).toBuffer())
      assert.ok(frame)
      // Viewers that ignore the orientation show the picture as it is stored.
      assert.equal(asStored === undefined, Number(orientation) === 1)
      if (asStored !== undefined) assertCorners(asStored.small, quarters)
      assertCorners(frame.small, corners)
      assertCorners(await frame.render(largeShape), corners)
    }
  })

  it('a truncated picture is scanned as far as viewers show it, or refused', async () => {
    const sound = paintWaves(500, 400, 0)
    for (const format of ['jpeg', 'png', 'gif'] as const) {
      const bytes = await toSharp(sound)[format](leastEffort[format]).toBuffer()
      const [whole] = await open(bytes)
      const [cut] = await open(bytes.subarray(0, Math.floor(bytes.length / 4)))
      assert.ok(whole && cut)
      assert.ok(isNear(colourOf(cut.small, 0.5, 0.05), colourOf(whole.small, 0.5, 0.05), 8), format)
      assert.ok(!isNear(colourOf(cut.small, 0.5, 0.9), colourOf(whole.small, 0.5, 0.9), 8), format)
    }
    const webp = await toSharp(sound).webp(leastEffort.webp).toBuffer()
    const cut = await openViews(webp.subarray(0, Math.floor(webp.length / 2)))
    assert.ok('unscanned' in cut && cut.unscanned === 'UnsupportedImage')
  })

  it('what is missing of a PNG is not filled with the picture before it', async () => {
    const noise = paint(400, 400, (x, y) => [(x * 7919 + y * 104_729) % 251, (x * y) % 241, (x * 31) ^ (y * 17)])
    for (const progressive of [false, true]) {
      const bytes = await toSharp(noise).png({ progressive }).toBuffer()
      const cut = bytes.subarray(0, Math.floor(bytes.length / 5))
      await open(
        await toSharp(paintPlain(400, 400, green))
          .png({ progressive })
          .toBuffer(),
      )
      const first = await openOne(cut)
      await open(
        await toSharp(paintPlain(400, 400, yellow))
          .png({ progressive })
          .toBuffer(),
      )
      const second = await openOne(cut)
      assert.ok(first.small.equals(second.small))
      if (!progressive) assert.deepEqual(colourOf(first.small, 0.5, 0.9), [0, 0, 0])
    }
  })

  it('what is transparent is looked at on white and on black', async () => {
    const drawn = paint(200, 200, (x) => (x < 100 ? [0, 0, 0, 255] : [255, 255, 255, 0]))
    for (const format of ['png', 'webp', 'gif'] as const) {
      const frames = await open(await toSharp(drawn)[format]().toBuffer())
      // The colours under the transparency may be a third view.
      assert.deepEqual(
        frames.slice(0, 2).map(({ index, background }) => [index, background]),
        [
          [0, 'white'],
          [0, 'black'],
        ],
      )
      const [white, black] = frames
      assert.ok(white && black)
      assert.deepEqual(colourOf(white.small, 0.75, 0.5), [255, 255, 255])
      assert.deepEqual(colourOf(black.small, 0.75, 0.5), [0, 0, 0])
      assert.deepEqual(colourOf(await white.render(largeShape), 0.25, 0.5), [0, 0, 0])
      assert.deepEqual(colourOf(await black.render(largeShape), 0.75, 0.5), [0, 0, 0])
    }
  })

  it('an opaque picture with an alpha channel, or with soft corners, is looked at once', async () => {
    const opaque = paintPlain(200, 200, [...green, 255])
    const soft = paint(200, 200, (x, y) => [...green, x + y < 12 ? 0 : 255])
    for (const pixels of [opaque, soft]) await openOne(await toSharp(pixels).png().toBuffer())
  })

  it('an archive behind the picture changes nothing', async () => {
    for (const format of ['jpeg', 'png', 'gif', 'webp'] as const) {
      const frame = await openOne(withArchiveBehind(await toSharp(paintQuarters(300, 200))[format]().toBuffer()))
      assertCorners(frame.small, quarters, 24)
    }
  })

  it('one decode for both sizes shows what two show', async () => {
    for (const [width, height] of [
      [300, 200],
      [1700, 1100],
      [3000, 400],
    ] as const) {
      const bytes = await toSharp(paintWaves(width, height, 5))
        .jpeg()
        .toBuffer()
      const [alone] = await open(bytes)
      const [both] = await open(bytes, { both: true })
      assert.ok(alone && both)
      assert.ok(getMeanDifference(alone.small, both.small) < 1)
      assert.ok(getMeanDifference(await alone.render(largeShape), await both.render(largeShape)) < 1)
    }
  })

  it('a PNG that shows another picture to those who follow its gamma is looked at both ways', async () => {
    // 16 bits: browsers show the picture in the lowest of them; other viewers show black.
    const dark = (value: number) => Math.round(65_535 * (value / 255) ** 22)
    const rows = Buffer.alloc(100 * 200)
    for (let i = 0; i < 10_000; i++) rows.writeUInt16BE(dark(i % 100 < 50 ? 200 : 120), i * 2)
    const gamma = Buffer.alloc(4)
    gamma.writeUInt32BE(1_000_000)
    const before = [pngChunk('gAMA', gamma)]
    const options = { width: 100, height: 100, depth: 16, rows: toRows(rows, 200) } as const
    const frames = await open(makePng({ ...options, before }))
    assert.equal(frames.length, 2)
    assert.ok(frames.some(({ small }) => isNear(colourOf(small, 0.25, 0.5), [200, 200, 200], 12)))
    assert.equal((await open(makePng(options))).length, 1)
  })

  it('a gamma is applied to each pixel before the picture becomes smaller', async () => {
    for (const gamma of [0.02, 1, 4, 10, 40]) {
      // Every third pixel of the left half is white, and every second one of the right half.
      const light = (x: number, y: number) => (x < 300 ? (x + y) % 3 === 0 : (x + y) % 2 === 0)
      const stored = (value: number) => Math.round(65_535 * (value / 255) ** (2.2 * gamma))
      const [dark, bright] = [stored(0), stored(240)]
      const repeated = Buffer.alloc(600 * 6 * 2)
      for (let y = 0, at = 0; y < 6; y++) {
        for (let x = 0; x < 600; x++, at += 2) repeated.writeUInt16BE(light(x, y) ? bright : dark, at)
      }
      const rows = Buffer.alloc(600 * 600 * 2, repeated)
      const chunk = Buffer.alloc(4)
      chunk.writeUInt32BE(gamma * 100_000)
      const options = { width: 600, height: 600, depth: 16, rows: toRows(rows, 1200) } as const
      const shown = await open(makePng({ ...options, before: [pngChunk('gAMA', chunk)] }))
      const halves = shown.map(({ small }) => [colourOf(small, 0.25, 0.5), colourOf(small, 0.75, 0.5)] as const)
      assert.ok(
        halves.some(([left, right]) => isNear(left, [80, 80, 80], 12) && isNear(right, [120, 120, 120], 12)),
        `gamma ${gamma}: ${halves.join(' and ')}`,
      )
    }
  })

  it('a PNG with an unusual gamma that is too large to apply it is refused', async () => {
    const chunk = Buffer.alloc(4)
    chunk.writeUInt32BE(200_000)
    const bytes = makePng({ width: 3600, height: 3600, before: [pngChunk('gAMA', chunk)] })
    const refused = await openViews(bytes)
    assert.ok('unscanned' in refused && refused.unscanned === 'ScanLimitExceeded')
  })

  it('no statement about colours beside an unusual gamma keeps it from being looked at', async () => {
    const dark = (value: number) => Math.round(65_535 * (value / 255) ** 4.4)
    const rows = Buffer.alloc(100 * 200)
    for (let i = 0; i < 10_000; i++) rows.writeUInt16BE(dark(i % 100 < 50 ? 200 : 120), i * 2)
    const options = { width: 100, height: 100, depth: 16, rows: toRows(rows, 200) } as const
    const toGamma = (value: number) => {
      const data = Buffer.alloc(4)
      data.writeUInt32BE(value)
      return pngChunk('gAMA', data)
    }
    const others: Record<string, Buffer> = {
      'a second gamma': toGamma(45_455),
      'a broken profile': pngChunk('iCCP', Buffer.from('x\0\0broken', 'latin1')),
      'an empty sRGB': pngChunk('sRGB', Buffer.alloc(0)),
      'a cICP of zeros': pngChunk('cICP', Buffer.alloc(4)),
    }
    for (const [name, other] of Object.entries(others)) {
      for (const before of [
        [toGamma(200_000), other],
        [other, toGamma(200_000)],
      ]) {
        const frames = await open(makePng({ ...options, before }))
        assert.ok(
          frames.some(({ small }) => isNear(colourOf(small, 0.25, 0.5), [200, 200, 200], 12)),
          name,
        )
      }
    }
    const swapped = Buffer.alloc(32)
    for (const [i, value] of [31_270, 32_900, 15_000, 6_000, 30_000, 60_000, 64_000, 33_000].entries())
      swapped.writeUInt32BE(value, i * 4)
    const refused = await openViews(makePng({ ...options, before: [pngChunk('cHRM', swapped)] }))
    assert.ok('unscanned' in refused && refused.unscanned === 'UnsupportedImage')
  })

  it('a picture with a border has tiles too if they are wanted', async () => {
    const isBorder = (at: number) => at < 100 || at >= 800
    const waves = paintWaves(900, 900, 0)
    const white = [255, 255, 255]
    const framed = paint(900, 900, (x, y) => {
      if (isBorder(x) || isBorder(y)) return white
      const at = (y * 900 + x) * 3
      return [waves.data[at] ?? 0, waves.data[at + 1] ?? 0, waves.data[at + 2] ?? 0]
    })
    const frame = await openOne(await toSharp(framed).png(leastEffort.png).toBuffer())
    const counts: number[] = []
    for (const hasTilesBesideParts of [false, true]) {
      counts.push((await frame.readParts({ isCloser: true, hasTilesBesideParts })).views.length)
    }
    const [without = 0, withTiles = 0] = counts
    assert.deepEqual([without > 3, withTiles - without], [true, 9])
    assert.ok((await frame.readParts({ isCloser: false, hasTilesBesideParts: true })).views.length < without)
  })

  it('colours under full transparency are looked at', async () => {
    const hidden = paint(200, 200, (x) => [...(x < 100 ? red : blue), 0])
    const frames = await open(await toSharp(hidden).png().toBuffer())
    assert.ok(
      frames.some(({ small }) => isNear(colourOf(small, 0.25, 0.5), red) && isNear(colourOf(small, 0.75, 0.5), blue)),
    )
  })

  it('pictures within a picture and behind it are looked at, a small copy of it is not', async () => {
    const host = await toSharp(paintQuarters(300, 200)).jpeg({ chromaSubsampling: '4:4:4' }).toBuffer()
    const other = await toSharp(paint(120, 90, (x) => (x < 60 ? blue : red)))
      .png()
      .toBuffer()
    const copy = await toSharp(paintQuarters(60, 40)).jpeg({ chromaSubsampling: '4:4:4' }).toBuffer()
    const toSegment = (body: Buffer) =>
      Buffer.concat([Buffer.from([0xff, 0xe1, (body.length + 2) >> 8, (body.length + 2) & 255]), body])
    const withSegment = (body: Buffer) => Buffer.concat([host.subarray(0, 2), toSegment(body), host.subarray(2)])
    const hasOther = (frames: OpenedView[]) =>
      frames.some(({ small }) => isNear(colourOf(small, 0.25, 0.5), blue) && isNear(colourOf(small, 0.75, 0.5), red))
    for (const bytes of [Buffer.concat([host, other]), withSegment(other)]) {
      const frames = await open(bytes)
      assert.deepEqual([frames.length, hasOther(frames)], [2, true])
    }
    assert.equal((await open(withSegment(copy))).length, 1)
    assert.equal((await open(Buffer.concat([host, Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3])]))).length, 1)
    const decoys = Buffer.alloc(80_000, Buffer.from([0xff, 0xd8, 0xff, 0]))
    for (const pictures of [Array.from({ length: 20 }, () => other), [decoys, copy]]) {
      const many = await openViews(Buffer.concat([host, ...pictures]))
      assert.ok('unscanned' in many && many.unscanned === 'ScanLimitExceeded')
    }
  })

  it('no other loader answers in this process', async () => {
    const card = toSharp(paintQuarters(64, 64))
    for (const bytes of [await card.clone().tiff().toBuffer(), await card.clone().avif().toBuffer()]) {
      await assert.rejects(sharp(bytes).metadata(), /unsupported image format/)
    }
    await assert.rejects(sharp(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')).metadata(), /unsupported/)
  })
})

function getMeanDifference(a: Buffer, b: Buffer): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += Math.abs((a[i] ?? 0) - (b[i] ?? 0))
  return sum / a.length
}
