/** What one picture may take. Within them the worst that was found took 6.4 seconds of a core and 317 MB. */
export type Limits = {
  /** Of one still picture. */
  maxPixels: number
  /** The largest that three of the four formats can hold. A column of 50 million rows took 36 seconds. */
  maxSide: number
  maxFrames: number
  /** Of an animated PNG: we compose it ourselves, 6 ms a frame however small. */
  maxApngFrames: number
  /** Decoded over all passes of one size, so a long animation counts more than once. */
  maxAnimationPixels: number
  maxJpegScans: number
  /** Every scan of a JPEG visits every pixel again. */
  maxJpegScanPixels: number
  /** What a decoder must hold at once when a picture does not come row by row: progressive, interlaced, animated. */
  maxHeldBytes: number
}

export const defaultLimits: Limits = {
  maxPixels: 50_000_000,
  maxSide: 65_535,
  maxFrames: 1_000,
  maxApngFrames: 500,
  maxAnimationPixels: 120_000_000,
  maxJpegScans: 100,
  maxJpegScanPixels: 600_000_000,
  maxHeldBytes: 150_000_000,
}
