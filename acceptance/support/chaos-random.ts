/** Reproducible random numbers: the same seed gives the same sequence (mulberry32). */
export function newRandom(seed: number) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    /** Returns true with this probability. */
    happens: (probability: number) => next() < probability,
    between: (low: number, high: number) => low + Math.floor(next() * (high - low + 1)),
    shuffle<T>(list: readonly T[]): T[] {
      return list
        .map((item) => ({ item, at: next() }))
        .sort((a, b) => a.at - b.at)
        .map(({ item }) => item)
    },
  }
}

export type Random = ReturnType<typeof newRandom>
