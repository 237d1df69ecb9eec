import type { Shape } from '../models/model.ts'

/** A small copy of a view, to measure the distance between two. */
export type Fingerprint = Uint8Array

/** Cells across a fingerprint: enough to tell a picture from the same picture under a mosaic. */
const cells = 56

export const fingerprintShape: Shape = { side: cells, kernel: 'linear' }

/**
 * Distances, as root mean square of a channel, from which on two views differ visibly: over the whole view, or within
 * one of its 64 blocks. Smaller distances are noise of dithering and compression, and steps of a movement. A picture
 * that the models score 0.99, mixed into 42 others up to a distance of 24, scored 0.3 at most.
 */
const visible = { whole: 12, block: 32 }
const blocks = 8
const blockCells = cells / blocks

/** Averages blocks of an RGB square whose side is a multiple of 56. */
export function toFingerprint(pixels: Buffer): Fingerprint {
  const side = Math.sqrt(pixels.length / 3)
  const block = side / cells
  if (block === 1) return pixels
  const sums = new Uint32Array(cells * cells * 3)
  let from = 0
  for (let y = 0; y < side; y++) {
    const row = Math.floor(y / block) * cells
    for (let cell = 0; cell < cells; cell++) {
      const at = (row + cell) * 3
      let [red, green, blue] = [0, 0, 0]
      for (let x = 0; x < block; x++, from += 3) {
        red += pixels[from] ?? 0
        green += pixels[from + 1] ?? 0
        blue += pixels[from + 2] ?? 0
      }
      sums[at] = (sums[at] ?? 0) + red
      sums[at + 1] = (sums[at + 1] ?? 0) + green
      sums[at + 2] = (sums[at + 2] ?? 0) + blue
    }
  }
  const means = new Uint8Array(sums.length)
  for (let i = 0; i < sums.length; i++) means[i] = (sums[i] ?? 0) / (block * block)
  return means
}

/** Remembers the views of one picture, so that each is classified once. */
export function makeSeenViews() {
  const seen: Fingerprint[] = []
  return {
    /**
     * Adds a view unless one that was added before looks the same. Views are compared with all added ones, not with
     * their predecessor, so that no picture can be faded in unnoticed.
     */
    add(fingerprint: Fingerprint): boolean {
      // Consecutive frames are most alike, so the last one is compared first.
      for (let i = seen.length - 1; i >= 0; i--) {
        if (!areDifferent(fingerprint, seen[i] as Fingerprint)) return false
      }
      seen.push(fingerprint)
      return true
    },
  }
}

export type SeenViews = ReturnType<typeof makeSeenViews>

const rowValues = cells * 3
const blockValues = blockCells * 3
const mostOfWhole = visible.whole ** 2 * (cells - 2) * rowValues
const mostOfBlock = visible.block ** 2 * blockCells * blockValues

function areDifferent(a: Fingerprint, b: Fingerprint): boolean {
  const sums = new Float64Array(blocks)
  let whole = 0
  // The top and bottom cells are left out: there the frames of an animation blend into their neighbours.
  for (let y = 1; y < cells - 1; y++) {
    for (let block = 0; block < blocks; block++) {
      const start = y * rowValues + block * blockValues
      let sum = 0
      for (let i = start; i < start + blockValues; i++) {
        const difference = (a[i] as number) - (b[i] as number)
        sum += difference * difference
      }
      whole += sum
      const inBlock = (sums[block] as number) + sum
      if (inBlock >= mostOfBlock) return true
      sums[block] = y % blockCells === blockCells - 1 ? 0 : inBlock
    }
    if (whole >= mostOfWhole) return true
  }
  return false
}
