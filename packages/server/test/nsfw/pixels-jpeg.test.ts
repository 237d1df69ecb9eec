import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import sharp from 'sharp'
import { makeSteeredJpeg } from '../../../../acceptance/support/steered-jpeg.ts'
import { largeShape, type Shape, smallShape } from '../../src/engines/nsfw/models/model.ts'
import { type OpenOptions, openPicture } from '../../src/engines/nsfw/pixels/open-picture.ts'
import { Refusal } from '../../src/engines/nsfw/pixels/render.ts'
import {
  type Colour,
  colourOf,
  cornersOf,
  green,
  isNear,
  paint,
  paintPlain,
  paintQuarters,
  red,
  toSharp,
} from './image-samples.ts'
import type { OpenedView } from './open-views.ts'

type Blocks = { side: number; pixels: Buffer }

/** The views of a JPEG up to its refusal, if it has one. */
async function read(bytes: Buffer, options: OpenOptions = {}): Promise<{ views: OpenedView[]; refusal?: string }> {
  const picture = await openPicture(bytes, options)
  if ('unscanned' in picture) assert.fail(`${picture.unscanned}: ${picture.reason}`)
  const views: OpenedView[] = []
  try {
    for await (const pass of picture.passes()) {
      for (const view of pass.views) views.push({ ...view, small: await view.render(smallShape) })
    }
  } catch (error) {
    assert.ok(error instanceof Refusal)
    return { views, refusal: error.unscanned }
  }
  return { views }
}

/** The views of a JPEG that shows several pictures, which makes it never clean. */
async function open(bytes: Buffer, options: OpenOptions = {}): Promise<OpenedView[]> {
  const { views, refusal } = await read(bytes, options)
  assert.equal(refusal, 'UnsupportedImage')
  return views
}

describe('sizes of a JPEG', () => {
  // 560 pixels are decoded in full, and 1,792 at an eighth: the other picture is looked at too.
  for (const blocks of [70, 224]) {
    it(`a JPEG of ${blocks * 8} pixels that shows another picture at a smaller size is seen at both`, async () => {
      const bytes = makeTwoColours(blocks)
      for (const options of [{}, { both: true, allSizes: true }]) {
        const shown = (await open(bytes, options)).map((view) => colourOf(view.small, 0.5, 0.5))
        assert.ok(
          shown.some(([red, , blue]) => red > blue + 60),
          `in full: ${shown.join(' ')}`,
        )
        assert.ok(
          shown.some(([red, , blue]) => blue > red + 60),
          `small: ${shown.join(' ')}`,
        )
      }
    })
  }

  it('a JPEG that shows another picture at an eighth is seen in all sizes between, whatever its size', async () => {
    for (const blocks of [70, 88]) {
      const colours = (await open(makeTwoColours(blocks))).map(({ small }) => toMean(small))
      const shows = (isShown: (colour: Colour) => boolean) => colours.some(isShown)
      assert.ok(
        shows(([red, , blue]) => red > blue + 100) && shows(([red, , blue]) => blue > red + 100),
        `${blocks * 8} pixels: ${colours.join(' and ')}`,
      )
      // At a half, the pixels beyond white are mixed with their neighbours.
      assert.ok(
        shows(([red, , blue]) => Math.abs(red - blue) <= 60),
        `${blocks * 8} pixels: ${colours.join(' and ')}`,
      )
    }
  })

  it('a profile that changes little is applied to the decoded picture', async () => {
    const colours = paintQuarters(900, 640)
    const plain = await toSharp(colours).jpeg({ chromaSubsampling: '4:4:4' }).toBuffer()
    const wide = await toSharp(colours).withIccProfile('p3').jpeg({ chromaSubsampling: '4:4:4' }).toBuffer()
    const [expected] = (await read(plain)).views
    const [shown] = (await read(wide)).views
    const stored = await sharp(wide, { ignoreIcc: true }).raw().toBuffer()
    assert.ok(expected && shown)
    for (const [i, corner] of cornersOf(shown.small).entries()) {
      assert.ok(isNear(corner, cornersOf(expected.small)[i] ?? red, 8), `corner ${i}`)
    }
    // Without the profile, the stored red is another one.
    assert.ok(!isNear([stored[0] ?? 0, stored[1] ?? 0, stored[2] ?? 0], red, 8))
  })

  const own: Shape = { side: 112, kernel: 'linear' }
  const large: Shape = { side: 448, kernel: 'cubic' }
  // Each shape is decoded at another size: of 560 pixels, 112 at a quarter and 224 in full; of 704, 224 at a half.
  for (const { pixels, shapes } of [
    { pixels: 560, shapes: [own, smallShape] },
    { pixels: 704, shapes: [smallShape, largeShape] },
    { pixels: 704, shapes: [large, smallShape] },
  ]) {
    const sides = shapes.map(({ side }) => side).join(' and ')
    it(`a JPEG of ${pixels} pixels shows models of ${sides} pixels the same pictures`, async () => {
      const bytes = makeTwoColours(pixels / 8)
      for (const allSizes of [false, true]) {
        const shown: Colour[] = []
        for (const view of await open(bytes, { allSizes })) {
          const [first = red, ...others] = await Promise.all(
            shapes.map(async (shape) => toMean(await view.render(shape))),
          )
          for (const other of others) assert.ok(isNear(first, other, 16), `${first} and ${other}`)
          shown.push(first)
        }
        for (const name of ['red', 'blue'] as const)
          assert.ok(shown.map(nameColour).includes(name), `${name}: ${shown.join(', ')}`)
      }
    })
  }

  it('a JPEG is looked at in full size as it is stored too', async () => {
    // The upper half is red in full size only, so the left half is as the orientation turns the picture.
    const [inFull, small] = [[200, 60, 60], grey].map((colour) => ({
      side: 112,
      pixels: paint(112, 112, (_, y) => (y < 56 ? colour : grey)).data,
    })) as [Blocks, Blocks]
    const steered = makeSteeredJpeg({ inFull, small })
    const tiff = [0x49, 0x49, 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]
    const exif = [0xff, 0xe1, 0, tiff.length + 8, ...Buffer.from('Exif\0\0'), ...tiff]
    const turned = Buffer.concat([steered.subarray(0, 2), Buffer.from(exif), steered.subarray(2)])
    const views = await open(turned)
    const reds = views.map(({ small }) => cornersOf(small).map((corner) => nameColour(corner) === 'red'))
    assert.ok(
      reds.some(([a, b, c, d]) => a && b && !c && !d),
      'as stored',
    )
    assert.ok(
      reds.some(([a, b, c, d]) => !a && b && !c && d),
      'as turned',
    )
  })

  it('a JPEG within another file is looked at in all sizes if they are wanted', async () => {
    const host = await toSharp(paint(300, 300, () => green))
      .png()
      .toBuffer()
    // An eighth is blue, a half is violet and the whole one is red.
    const views = await open(Buffer.concat([host, makeTwoColours(88)]), { allSizes: true })
    const shown = views.map(({ small }) => toMean(small))
    assert.ok(
      shown.some(([red, , blue]) => blue > red + 100),
      shown.join(' '),
    )
  })

  it('a drawing with hard edges is seen once, although a smaller size lacks its details', async () => {
    const board = paint(200, 200, (x, y) => ((x >> 3) % 2 === (y >> 3) % 2 ? [255, 255, 255] : [0, 0, 0]))
    const { views, refusal } = await read(await toSharp(board).jpeg().toBuffer())
    assert.deepEqual([views.length, refusal], [1, undefined])
  })

  it('an ordinary JPEG is seen once, whatever its size', async () => {
    for (const side of [300, 700, 2100]) {
      for (const progressive of [false, true]) {
        const bytes = await toSharp(paintQuarters(side, side)).jpeg({ progressive }).toBuffer()
        const { views, refusal } = await read(bytes, { allSizes: true })
        assert.deepEqual([views.length, refusal], [1, undefined], `${side} pixels`)
      }
    }
  })
})

const grey = [128, 128, 128]

const twoColours = new Map<number, Buffer>()

/** A JPEG that is red in full size and blue at smaller ones, encoded once for all tests. */
function makeTwoColours(side: number): Buffer {
  const known = twoColours.get(side)
  if (known !== undefined) return known
  const [inFull, small] = [
    [200, 60, 60],
    [60, 60, 200],
  ].map((colour) => ({ side, pixels: paintPlain(side, side, colour).data })) as [Blocks, Blocks]
  const bytes = makeSteeredJpeg({ inFull, small })
  twoColours.set(side, bytes)
  return bytes
}

function toMean(square: Buffer): Colour {
  const sums: Colour = [0, 0, 0]
  for (let i = 0; i < square.length; i++) sums[i % 3] = (sums[i % 3] ?? 0) + (square[i] ?? 0)
  return sums.map((sum) => Math.round((sum * 3) / square.length)) as Colour
}

const nameColour = ([red, , blue]: Colour) => (red > blue + 60 ? 'red' : blue > red + 15 ? 'blue' : 'neither')
