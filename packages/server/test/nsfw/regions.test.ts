import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Box, findRegions, findTiles } from '../../src/engines/nsfw/pixels/regions.ts'
import { blue, green, type Pixels, paint, red, yellow } from './image-samples.ts'

const side = 224
const square = { width: 1000, height: 1000 }

/** A pattern without lines of one colour, of which each panel has its own. */
const noise = (x: number, y: number, colour: number[]) => {
  const mixed = Math.imul(Math.imul(x, 374_761_393) + Math.imul(y, 668_265_263), 1_274_126_177)
  const shade = ((mixed >>> 24) % 27) - 13
  return colour.map((value) => Math.max(0, Math.min(255, value + shade)))
}
const colours = [red, green, blue, yellow]

function paintCollage(count: number, gutter: number): Pixels {
  const panel = (side - gutter * (count - 1)) / count
  return paint(side, side, (x, y) => {
    const [column, row] = [x, y].map((at) => Math.floor(at / (panel + gutter)))
    const isGutter = [x, y].some((at) => at % (panel + gutter) >= panel)
    return isGutter ? [255, 255, 255] : noise(x, y, colours[((column ?? 0) + (row ?? 0) * 3) % 4] ?? red)
  })
}

const isNear = (box: Box, { left, top, width, height }: Box) =>
  Math.abs(box.left - left) < 0.02 &&
  Math.abs(box.top - top) < 0.02 &&
  Math.abs(box.width - width) < 0.04 &&
  Math.abs(box.height - height) < 0.04

describe('parts of a picture', () => {
  test('are none when it has no border, no panels and usual proportions', () => {
    const { data } = paint(side, side, (x, y) => noise(x, y, green))
    assert.deepEqual(findRegions(data, square), [])
  })

  test('are none in a sky of many shades above hills', () => {
    const { data } = paint(side, side, (x, y) => {
      const hill = 130 + 25 * Math.sin(x / 30)
      return y < hill ? [60 + y, 110 + y, 250] : noise(x, y, green)
    })
    assert.deepEqual(findRegions(data, square), [])
  })

  test('are at most 40 and the tiles of a strip, however many lines it has', () => {
    const { data } = paint(side, side, (x, y) => (x % 40 < 3 || y % 40 < 3 ? [255, 255, 255] : noise(x, y, [x, y, 90])))
    const boxes = findRegions(data, square)
    assert.ok(boxes.length > 20 && boxes.length <= 40, `${boxes.length} parts`)
  })

  test('are the content within a border of one colour', () => {
    const { data } = paint(side, side, (x, y) =>
      x >= 56 && x < 168 && y >= 28 && y < 196 ? noise(x, y, blue) : [250, 250, 250],
    )
    const [box, ...others] = findRegions(data, square)
    assert.ok(box !== undefined && isNear(box, { left: 0.25, top: 0.125, width: 0.5, height: 0.75 }))
    assert.equal(others.length, 0)
  })

  for (const gutter of [0, 4]) {
    test(`are all panels of a collage with gutters of ${gutter} cells`, () => {
      for (const count of [2, 3, 4]) {
        const boxes = findRegions(paintCollage(count, gutter).data, square)
        for (let i = 0; i < count * count; i++) {
          const share = (side - gutter * (count - 1)) / count / side
          const toStart = (n: number) => n * (share + gutter / side)
          const panel = { left: toStart(i % count), top: toStart(Math.floor(i / count)), width: share, height: share }
          assert.ok(
            boxes.some((box) => isNear(box, panel)),
            `panel ${i} of ${count} x ${count}`,
          )
        }
      }
    })
  }

  test('are panels behind a line that is drawn near their edge', () => {
    const isWhite = (at: number, gutter: number, line: number) =>
      Math.abs(at / side - 0.5) < gutter / 2 || Math.abs(at / side - line) < 0.006
    for (const line of [0.39, 0.4, 0.44, 0.56, 0.61]) {
      for (const { rows, gutter } of [
        { rows: 1, gutter: 0.04 },
        { rows: 2, gutter: 0.03 },
      ]) {
        const { data } = paint(side, side, (x, y) => {
          if (isWhite(x, gutter, line) || (rows > 1 && isWhite(y, gutter, line))) return [255, 255, 255]
          return noise(x, y, colours[(x < side / 2 ? 0 : 1) + (rows > 1 && y > side / 2 ? 2 : 0)] ?? red)
        })
        const boxes = findRegions(data, square)
        const share = 0.5 - gutter / 2
        const height = rows > 1 ? share : 1
        for (const left of [0, 0.5 + gutter / 2]) {
          for (const top of rows > 1 ? [0, 0.5 + gutter / 2] : [0]) {
            assert.ok(
              boxes.some((box) => isNear(box, { left, top, width: share, height })),
              `line at ${line}, ${rows} rows, panel at ${left} ${top}`,
            )
          }
        }
      }
    }
  })

  const backgrounds: Record<string, (x: number, y: number) => number[]> = {
    'a gradient': (x, y) => [x, y, 200 - (x >> 1)],
    'a pattern of stripes': (x) => (x % 24 < 12 ? green : [255, 255, 255]),
    'another picture': (x, y) => noise(x, y, yellow),
  }
  for (const [name, background] of Object.entries(backgrounds)) {
    test(`are a picture that is placed on ${name}, anywhere`, () => {
      for (const [left, top, width, height] of [
        [50, 40, 110, 130],
        [36, 120, 144, 60],
        [0, 0, 100, 120],
        [124, 114, 100, 110],
      ] as const) {
        const isInset = (x: number, y: number) => x >= left && x < left + width && y >= top && y < top + height
        const { data } = paint(side, side, (x, y) => (isInset(x, y) ? noise(x, y, blue) : background(x, y)))
        const inset = { left: left / side, top: top / side, width: width / side, height: height / side }
        assert.ok(
          findRegions(data, square).some((box) => isNear(box, inset)),
          `at ${left} ${top}`,
        )
      }
    })
  }

  test('are the content within a frame of two colours', () => {
    const { data } = paint(side, side, (x, y) => {
      const margin = Math.min(x, y, side - 1 - x, side - 1 - y)
      return margin < 20 ? [20, 20, 60] : margin < 50 ? [240, 220, 170] : noise(x, y, blue)
    })
    const content = { left: 50 / side, top: 50 / side, width: 124 / side, height: 124 / side }
    assert.ok(findRegions(data, square).some((box) => isNear(box, content)))
  })

  test('are a picture whose sides have the colours of its surroundings in places', () => {
    const { data } = paint(side, side, (x, y) => {
      const isInset = x >= 50 && x < 160 && y >= 40 && y < 170
      return isInset && x + y > 130 ? noise(x, y, blue) : [255 - (x >> 2), 255 - (y >> 2), 200]
    })
    const boxes = findRegions(data, square)
    const inset = { left: 50 / side, top: 40 / side, width: 110 / side, height: 130 / side }
    assert.ok(boxes.some((box) => isNear(box, inset)))
  })

  test('are overlapping squares of a strip, from end to end', () => {
    const { data } = paint(side, side, (x, y) => noise(x, y, green))
    for (const size of [
      { width: 500, height: 2000 },
      { width: 9000, height: 500 },
    ]) {
      const boxes = findRegions(data, size)
      const ends = boxes.map(({ left, top, width, height }) => [left + top, left + width, top + height])
      assert.equal(boxes.length, size.width > size.height ? 18 : 7)
      assert.equal(Math.min(...ends.map(([start = 1]) => start)), 0)
      assert.ok(ends.some(([, right = 0, bottom = 0]) => right > 0.999 && bottom > 0.999))
      for (const { width, height } of boxes)
        assert.ok(Math.abs((width * size.width) / (height * size.height) - 1) < 0.01)
    }
    assert.deepEqual(findRegions(data, { width: 9000, height: 20 }), [])
  })

  test('are nine tiles of a picture that is larger than what a model sees', () => {
    assert.equal(findTiles({ width: 1000, height: 700 }, side).length, 9)
    assert.deepEqual(findTiles({ width: 1000, height: 400 }, side), [])
  })
})
