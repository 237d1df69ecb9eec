/**
 * How much content may lie in memory at once, over all uploads and downloads. What finds no room goes to an encrypted
 * file at once, however small it is: a thousand slow clients must not cost a thousand times what one does.
 */
export function makeContentMemory({ maxBytes }: { maxBytes: number }) {
  let taken = 0
  return {
    /** False when there is no room. */
    take(bytes: number): boolean {
      if (taken + bytes > maxBytes) return false
      taken += bytes
      return true
    },
    release(bytes: number) {
      taken -= bytes
    },
    countBytes: () => taken,
  }
}

export type ContentMemory = ReturnType<typeof makeContentMemory>
