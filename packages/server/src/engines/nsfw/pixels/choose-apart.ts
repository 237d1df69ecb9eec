/** A small copy of a picture, only to tell how far two are from each other. */
export type Thumbnail = Uint8Array

/** As root mean square of a channel. Below it lie the noise of dithering and compression, not another scene. */
const minDistance = 4

/**
 * At most `most`, each as far as possible from all before it: the first of all, then what differs most. So scene changes
 * come first, one odd picture among many alike is always taken, and a picture like one taken already never is.
 */
export function chooseApart<T extends { thumbnail: Thumbnail }>(candidates: T[], most: number): T[] {
  const chosen: T[] = []
  const distances = candidates.map(() => Number.POSITIVE_INFINITY)
  let at = 0
  while (chosen.length < most) {
    const next = candidates[at]
    if (next === undefined || (distances[at] ?? 0) < minDistance * minDistance) break
    chosen.push(next)
    for (const [i, { thumbnail }] of candidates.entries()) {
      const distance = distances[i] ?? 0
      distances[i] = Math.min(distance, getMeanSquare(thumbnail, next.thumbnail, distance))
    }
    at = findLargest(distances)
  }
  return chosen
}

/** Fine enough to tell a picture from the same one under a mosaic. */
const cells = 56

/** Means over blocks of an RGB square whose side is a multiple of 56. */
export function toThumbnail(pixels: Buffer, side: number): Thumbnail {
  const block = side / cells
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

/** Stops when it is more than `enough`: most candidates are far from most of the chosen. */
function getMeanSquare(a: Thumbnail, b: Thumbnail, enough: number): number {
  const most = enough * a.length
  const row = cells * 3
  let sum = 0
  // The uppermost and the lowest cells stay out: there the frames of an animation blend into their neighbours.
  for (let start = row; start < a.length - row && sum < most; start += row) {
    for (let i = start; i < start + row; i++) {
      const difference = (a[i] ?? 0) - (b[i] ?? 0)
      sum += difference * difference
    }
  }
  return sum / a.length
}

/** The first of equals, so that the same picture always gives the same frames. */
function findLargest(values: number[]): number {
  let at = 0
  for (const [i, value] of values.entries()) {
    if (value > (values[at] ?? 0)) at = i
  }
  return at
}
