/** What is learned of content while it streams by once. */
export type Measured = { bytes: number; head: Buffer }

const headBytes = 4096

/** Counts, and keeps the head for type detection; says stop at the limit, so that nothing beyond it is kept. */
export function newMeasure(maxBytes: number) {
  const heads: Buffer[] = []
  let bytes = 0

  return {
    /** False from the first byte over the limit on. */
    add(chunk: Buffer): boolean {
      if (bytes < headBytes) heads.push(chunk.subarray(0, headBytes - bytes))
      bytes += chunk.length
      return bytes <= maxBytes
    },
    finish: (): Measured => ({ bytes, head: Buffer.concat(heads) }),
  }
}
