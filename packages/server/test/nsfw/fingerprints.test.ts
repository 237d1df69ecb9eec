import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toOpaqueFingerprint } from '../../src/engines/nsfw/pixels/fingerprints.ts'

const sizes = [1, 2, 55, 56, 57, 130].flatMap((width) => [1, 3, 55, 56, 300].map((height) => ({ width, height })))

/** Pixels whose channels all differ, without transparency. */
const makePixels = (count: number) =>
  Int32Array.from({ length: count }, (_, i) => (255 << 24) | ((i * 2_654_435) >>> 3))

/** The first pixel of a cell, and the one behind its last. */
const toSpan = (cell: number, side: number) => {
  const start = Math.floor((cell * side) / 56)
  return [start, Math.max(start + 1, Math.floor(((cell + 1) * side) / 56))] as const
}

function averageEachCell(pixels: Int32Array, { width, height }: { width: number; height: number }): number[] {
  return Array.from({ length: 56 * 56 * 3 }, (_, value) => {
    const [left, right] = toSpan(Math.floor(value / 3) % 56, width)
    const [top, bottom] = toSpan(Math.floor(value / 3 / 56), height)
    let sum = 0
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) sum += ((pixels[y * width + x] as number) >> ((value % 3) * 8)) & 255
    }
    return Math.floor(sum / ((right - left) * (bottom - top)))
  })
}

describe('the fingerprint of an opaque frame', () => {
  it('has the mean of each cell, also of frames with fewer pixels than cells', () => {
    for (const size of sizes) {
      const pixels = makePixels(size.width * size.height)
      assert.deepEqual([...(toOpaqueFingerprint(pixels, size) ?? [])], averageEachCell(pixels, size))
    }
  })

  it('reads each pixel once, also of thin frames', () => {
    for (const size of sizes) {
      const reads: PropertyKey[] = []
      const pixels = new Proxy(makePixels(size.width * size.height), {
        get(target, key) {
          reads.push(key)
          return Reflect.get(target, key)
        },
      })
      toOpaqueFingerprint(pixels, size)
      assert.equal(reads.length, size.width * size.height)
      assert.equal(new Set(reads).size, reads.length)
    }
  })
})
