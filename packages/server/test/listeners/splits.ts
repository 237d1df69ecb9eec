/** The bytes cut into two at every place, and into single bytes. */
export function* everySplit(bytes: Buffer): Generator<Buffer[]> {
  yield [bytes]
  for (let at = 1; at < bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)]
  yield [...bytes].map((byte) => Buffer.of(byte))
}

/** Numbers that are the same in every run: a small xorshift. */
export function newRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

export function toRandomPieces(bytes: Buffer, random: (below: number) => number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random(40)
    pieces.push(bytes.subarray(at, end))
    at = end
  }
  return pieces
}

/** Some bytes changed, dropped or doubled. */
export function spoil(bytes: Buffer, random: (below: number) => number): Buffer {
  const spoiled = [...bytes]
  for (let n = random(6); n > 0; n--) {
    const at = random(Math.max(1, spoiled.length))
    const kind = random(3)
    if (kind === 0) spoiled[at] = random(256)
    else if (kind === 1) spoiled.splice(at, 1 + random(8))
    else spoiled.splice(at, 0, ...spoiled.slice(at, at + random(12)))
  }
  return Buffer.from(spoiled)
}
