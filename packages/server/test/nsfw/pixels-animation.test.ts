import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type ApngFrame,
  makeApng,
  makeFlickeringGif,
  makeGif,
  withArchiveBehind,
} from '../../../../acceptance/support/hostile-images.ts'
import { largeShape } from '../../src/engines/nsfw/models/model.ts'
import { openPicture, type Pass } from '../../src/engines/nsfw/pixels/open-picture.ts'
import { Refusal } from '../../src/engines/nsfw/pixels/render.ts'
import {
  blue,
  type Colour,
  colourOf,
  green,
  isNear,
  type Pixels,
  paint,
  paintPlain,
  paintQuarters,
  paintWaves,
  red,
  toRgba,
  toRoll,
  yellow,
} from './image-samples.ts'
import { type Opened, openViews } from './open-views.ts'

async function open(bytes: Buffer): Promise<Opened> {
  const picture = await openViews(bytes)
  if ('unscanned' in picture) assert.fail(`${picture.unscanned}: ${picture.reason}`)
  return picture
}

const toWholeFrame = (pixels: Pixels): ApngFrame => ({
  width: pixels.width,
  height: pixels.height,
  pixels: toRgba(pixels),
})

const encoders: Record<string, (frames: Pixels[]) => Promise<Buffer>> = {
  GIF: (frames) => toRoll(frames).gif({ effort: 1, keepDuplicateFrames: true }).toBuffer(),
  WebP: (frames) => toRoll(frames).webp({ effort: 0, lossless: true }).toBuffer(),
  APNG: async (frames) =>
    makeApng({ width: frames[0]?.width ?? 1, height: frames[0]?.height ?? 1 }, frames.map(toWholeFrame)),
}

describe('animations', () => {
  for (const [name, encode] of Object.entries(encoders)) {
    it(`one frame of ${name} that differs is chosen, wherever it is`, async () => {
      for (const [at, count] of [
        [27, 36],
        [0, 18],
        [17, 18],
      ] as const) {
        const films = Array.from({ length: count }, (_, i) => paintWaves(50, 40, i * 2))
        const picture = await open(await encode(films.with(at, paintQuarters(50, 40))))
        assert.equal(picture.isAnimated, true)
        assert.equal(picture.framesTotal, count)
        const found = picture.views.find(({ index }) => index === at)
        assert.ok(found, `frame ${at} is not among ${picture.views.map(({ index }) => index)}`)
        assert.ok(isNear(colourOf(found.small, 0.25, 0.25), red, 30))
        assert.ok(isNear(colourOf(await found.render(largeShape), 0.75, 0.75), yellow, 30))
      }
    })

    it(`a still ${name} of many frames is looked at once`, async () => {
      const picture = await open(await encode(Array.from({ length: 20 }, () => paintQuarters(50, 40))))
      assert.deepEqual(
        picture.views.map(({ index }) => index),
        [0],
      )
    })

    it(`every scene of ${name} is chosen`, async () => {
      // Encoders leave out a frame that equals the one before it.
      const scenes = [red, green, blue, yellow].flatMap((colour) =>
        Array.from({ length: 5 }, (_, i) => paint(80, 60, (x, y) => (x === i && y === 0 ? [9, 9, 9] : colour))),
      )
      const { views } = await open(await encode(scenes))
      assert.deepEqual(
        views.map(({ index }) => Math.floor(index / 5)),
        [0, 1, 2, 3],
      )
    })
  }

  it('a frame that lifts a mosaic is told from the ones under it', async () => {
    const sharpOne = paint(224, 224, (x, y) => (((x >> 2) + (y >> 2)) % 2 === 0 ? [60, 60, 60] : [180, 180, 180]))
    const mosaic = paintPlain(224, 224, [120, 120, 120])
    const frames = Array.from({ length: 20 }, (_, i) => (i === 11 ? sharpOne : mosaic))
    const picture = await open(await toRoll(frames).gif({ effort: 1, keepDuplicateFrames: true }).toBuffer())
    assert.deepEqual(
      picture.views.map(({ index }) => index),
      [0, 11],
    )
  })

  it('every frame that differs from all before it is chosen, however many there are', async () => {
    const places = Array.from({ length: 60 }, (_, i) => [(i % 10) * 16, Math.floor(i / 10) * 16] as const)
    const rowOfSquare = Buffer.alloc(16 * 3, Buffer.from(red))
    const frames = places.map(([left, top]) => {
      const frame = paintPlain(160, 96, [200, 200, 200])
      for (let y = top; y < top + 16; y++) frame.data.set(rowOfSquare, (y * 160 + left) * 3)
      return frame
    })
    const picture = await open((await encoders.GIF?.([...frames, ...frames])) ?? Buffer.alloc(0))
    assert.deepEqual([picture.framesTotal, picture.views.length], [120, 60])
  })

  it('a picture that is faded in slowly is chosen several times on its way', async () => {
    const frames = Array.from({ length: 100 }, (_, i) => paintPlain(120, 90, [i * 2, i * 2, i * 2]))
    const { views } = await open(await toRoll(frames).webp({ lossless: true, effort: 0 }).toBuffer())
    assert.ok(views.length > 15, `${views.length} frames`)
    assert.ok((views.at(-1)?.index ?? 0) > 94)
  })

  it('a frame beyond the first pass is found, in both sizes', async () => {
    const size = { width: 16, height: 16 }
    const frames = Array.from({ length: 600 }, (_, i) => ({ ...size, colour: i === 555 ? (2 as const) : (1 as const) }))
    const { views: chosen } = await open(makeGif(size, frames))
    const found = chosen.find(({ index }) => index === 555)
    assert.ok(found)
    assert.ok(isNear(colourOf(found.small, 0.5, 0.5), [255, 0, 0]))
    assert.ok(isNear(colourOf(await found.render(largeShape), 0.5, 0.5), [255, 0, 0]))
  })

  it('each chosen frame shows its own colours, also when the pixels of a frame are an odd number', async () => {
    // More than the 16 frames that are scaled at once.
    const colours = Array.from({ length: 20 }, (_, i): Colour => [(i * 37) % 256, (i * 91) % 256, (i * 13) % 256])
    for (const encode of Object.values(encoders)) {
      const { views } = await open(await encode(colours.map((colour) => paintPlain(97, 35, colour))))
      assert.ok(views.length > 16, `${views.length} frames`)
      for (const { index, small, render } of views) {
        const colour = colours[index] as Colour
        assert.ok(isNear(colourOf(small, 0.5, 0.5), colour, 8), `${index} of ${colourOf(small, 0.5, 0.5)}`)
        assert.ok(isNear(colourOf(await render(largeShape), 0.9, 0.5), colour, 8))
      }
    }
  })

  it('frames that become transparent late are looked at on white and on black', async () => {
    const cleared = paint(100, 80, (x) => (x < 50 ? [...red, 255] : [0, 0, 0, 0]))
    const whole = paintPlain(100, 80, [...red, 255])
    const { views } = await open(await toRoll([whole, cleared]).webp({ lossless: true, effort: 0 }).toBuffer())
    assert.deepEqual(
      views.map(({ index, small }) => [index, colourOf(small, 0.75, 0.5)]),
      [
        [0, red],
        [1, [255, 255, 255]],
        [1, [0, 0, 0]],
      ],
    )
  })

  it('a GIF of parts is shown as the whole that viewers make of them', async () => {
    const canvas = { width: 100, height: 100 }
    const { views } = await open(
      makeGif(canvas, [
        { ...canvas, colour: 1 },
        { width: 50, height: 100, left: 50, colour: 2, dispose: 3 },
        { width: 50, height: 50, colour: 3 },
      ]),
    )
    const halves = views.map(({ small }) => [colourOf(small, 0.25, 0.25), colourOf(small, 0.75, 0.75)])
    const [white, pureRed, pureGreen] = [
      [255, 255, 255],
      [255, 0, 0],
      [0, 255, 0],
    ]
    assert.deepEqual(halves, [
      [white, white],
      [white, pureRed],
      [pureGreen, white],
    ])
  })

  it('a GIF that breaks off is scanned as far as it goes', async () => {
    const films = Array.from({ length: 10 }, (_, i) => paintWaves(100, 80, i * 20))
    const bytes = await toRoll(films).gif().toBuffer()
    const { views } = await open(bytes.subarray(0, Math.floor(bytes.length * 0.75)))
    assert.ok(views.length > 2 && views.every(({ index }) => index < 9))
  })

  it('the frames before a broken one are chosen before the animation is refused', async () => {
    const frames = Array.from({ length: 270 }, (_, i) => paintWaves(40, 30, i * 20))
    const bytes = (await encoders.WebP?.(frames)) ?? Buffer.alloc(0)
    const picture = await openPicture(spoil(bytes, findWebpFrames(bytes)[260] ?? 0, 60))
    assert.ok('passes' in picture)
    const passes = picture.passes()
    const { value: pass } = (await passes.next()) as IteratorYieldResult<Pass>
    assert.ok(pass.views.length > 5 && pass.views.every(({ index }) => index < 250))
    await assert.rejects(passes.next(), Refusal)
  })

  it('an animation of one frame is a still picture', async () => {
    const pixels = toRgba(paintQuarters(80, 60))
    const { views, isAnimated } = await open(makeApng({ width: 80, height: 60 }, [{ width: 80, height: 60, pixels }]))
    assert.deepEqual([views.length, isAnimated], [1, false])
  })

  it('an archive behind an animation changes nothing', async () => {
    const { views } = await open(withArchiveBehind(makeFlickeringGif(60, 60, 4)))
    assert.equal(views.length, 2)
  })
})

describe('animated PNG', () => {
  const canvas = { width: 80, height: 60 }
  const full = (colour: number[], more: Partial<ApngFrame> = {}): ApngFrame => ({
    ...canvas,
    pixels: toRgba(paintPlain(80, 60, colour)),
    ...more,
  })
  const part = (colour: number[], more: Partial<ApngFrame> = {}): ApngFrame => ({
    width: 40,
    height: 60,
    left: 40,
    pixels: toRgba(paintPlain(40, 60, colour)),
    ...more,
  })
  const looks = async (bytes: Buffer): Promise<[index: number, left: Colour, right: Colour][]> =>
    (await open(bytes)).views.map(({ index, small }) => [index, colourOf(small, 0.25, 0.5), colourOf(small, 0.75, 0.5)])

  it('the picture that is no part of the animation is a frame as well', async () => {
    const bytes = makeApng({ ...canvas, still: toRgba(paintPlain(80, 60, red)) }, [full(green)])
    assert.deepEqual(await looks(bytes), [
      [0, red, red],
      [1, green, green],
    ])
  })

  it('frames are drawn over, put back and cleared as they say', async () => {
    const drawn = makeApng(canvas, [full(red), part(green), part(blue, { dispose: 2 }), part(yellow, { left: 0 })])
    assert.deepEqual(await looks(drawn), [
      [0, red, red],
      [1, red, green],
      [2, red, blue],
      [3, yellow, green],
    ])
    const cleared = await looks(makeApng(canvas, [full(red), part(green, { dispose: 1 }), part(blue, { left: 0 })]))
    assert.ok(
      cleared.some(([index, left, right]) => index === 2 && isNear(left, blue, 0) && isNear(right, [255, 255, 255], 0)),
    )
    const over = await looks(makeApng(canvas, [full([0, 0, 0]), part([...green, 128], { blend: 1 })]))
    assert.ok(
      over.some(([index, left, right]) => index === 1 && isNear(left, [0, 0, 0], 0) && isNear(right, [15, 100, 15], 2)),
    )
  })

  it('one that breaks off is scanned as far as it goes', async () => {
    const bytes = makeApng(canvas, [full(red), full(green), full(blue)])
    const cut = bytes.subarray(0, bytes.lastIndexOf('fcTL') + 10)
    assert.deepEqual(
      (await looks(cut)).map(([index]) => index),
      [0, 1],
    )
  })

  it('one that contradicts itself is refused, never scanned in part', async () => {
    const sound = makeApng(canvas, [full(red), full(green), full(blue)])
    const broken: Record<string, Buffer> = {
      'more frames than stated': makeApng({ ...canvas, stated: 2 }, [full(red), full(green), full(blue)]),
      'fewer frames than stated': makeApng({ ...canvas, stated: 9 }, [full(red), full(green)]),
      'a frame outside': makeApng(canvas, [full(red), part(green, { left: 41 })]),
      'a frame of no size': makeApng(canvas, [full(red), part(green, { width: 0, pixels: Buffer.alloc(0) })]),
      'a first frame of another size': makeApng(canvas, [part(red), full(green)]),
      'no animation header': rename(sound, 'acTL', 'abTL'),
      'data of no frame': rename(sound, 'fcTL', 'fbTL'),
      'a frame that does not decode': spoil(sound, sound.lastIndexOf('fdAT') + 10),
    }
    for (const [name, bytes] of Object.entries(broken)) {
      const answer = await openViews(bytes)
      assert.ok('unscanned' in answer && answer.unscanned === 'UnsupportedImage', name)
    }
  })
})

function rename(bytes: Buffer, from: string, to: string): Buffer {
  const copy = Buffer.from(bytes)
  for (let at = copy.indexOf(from); at >= 0; at = copy.indexOf(from, at)) copy.write(to, at, 'latin1')
  return copy
}

function spoil(bytes: Buffer, at: number, count = 8): Buffer {
  const copy = Buffer.from(bytes)
  copy.fill(0xff, at, at + count)
  return copy
}

/** Where the compressed pixels of each frame of a WebP begin, behind the headers of the frame and of its picture. */
function findWebpFrames(bytes: Buffer): number[] {
  const found: number[] = []
  for (let at = bytes.indexOf('ANMF'); at >= 0; at = bytes.indexOf('ANMF', at + 8)) found.push(at + 8 + 16 + 8 + 5)
  return found
}
