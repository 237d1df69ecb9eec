/** How a stream of LZMA ended: as announced, with bytes that are none, before its end, or at a distance not kept. */
export type LzmaEnd = 'complete' | 'damaged' | 'cut' | 'too far'

export const lzmaHeadBytes = 13
const unknownSize = 0xffff_ffff_ffff_ffffn
const endDistance = 0xffff_ffff
const topValue = 2 ** 24
const pieceBytes = 65_536

type Options = {
  /** The next byte of the input behind the head; -1 at its end. */
  nextByte: () => number
  /** The decoder keeps this much of its output; streams that refer further back end with 'too far'. */
  maxWindowBytes: number
  maxSymbols?: number
}

/** Where the probabilities of each kind of decision begin, in one array. */
const at = {
  isMatch: 0,
  isRep: 192,
  isRep0: 204,
  isRep1: 216,
  isRep2: 228,
  isRep0Long: 240,
  slots: 432,
  special: 688,
  align: 804,
  lengths: 820,
  repLengths: 820 + 514,
  literals: 820 + 2 * 514,
}

/**
 * Decodes LZMA behind the head of a `.lzma` file, and yields the output in pieces. Returns how the stream ended;
 * 'complete' also when the limit of symbols is reached.
 */
export function* decodeLzma(head: Buffer, options: Options): Generator<Buffer, LzmaEnd> {
  const announced = head.readBigUInt64LE(5)
  const isKnown = announced !== unknownSize
  let left = isKnown ? Number(announced) : Infinity
  const window = openWindow(options.maxWindowBytes)
  const symbols = openSymbols(head[0] as number, window, options.nextByte)
  const { status } = symbols
  for (let count = options.maxSymbols ?? Infinity; count > 0 && left > 0 && !status.isCut; count--) {
    const { length, distance } = symbols.decode()
    const isEnd = distance === endDistance
    if (isEnd || distance >= window.position() || length > left) {
      yield* window.take()
      if (status.isCut) return 'cut'
      return isEnd && !isKnown ? 'complete' : 'damaged'
    }
    if (distance >= window.kept()) {
      yield* window.take()
      return 'too far'
    }
    window.copy(distance, length)
    left -= Math.max(1, length)
    if (window.pending() >= pieceBytes) yield* window.take()
  }
  yield* window.take()
  return status.isCut ? 'cut' : 'complete'
}

/** Decodes literals into the window, and tells of repetitions. */
function openSymbols(properties: number, window: ReturnType<typeof openWindow>, nextByte: () => number) {
  const lc = properties % 9
  const lp = Math.floor(properties / 9) % 5
  const posMask = 2 ** Math.floor(properties / 45) - 1
  const lpMask = 2 ** lp - 1
  const probabilities = new Uint16Array(at.literals + 0x300 * 2 ** (lc + lp)).fill(1024)
  const { decodeBit, decodeTree, decodeReverse, decodeDirect, status } = openRangeDecoder(probabilities, nextByte)
  let state = 0
  let [rep0, rep1, rep2, rep3] = [0, 0, 0, 0]

  function decodeLiteral(position: number) {
    const previous = position === 0 ? 0 : window.look(0)
    const base = at.literals + 0x300 * (((position & lpMask) << lc) + (previous >> (8 - lc)))
    let symbol = 1
    if (state >= 7) {
      let match = window.look(rep0)
      while (symbol < 0x100) {
        const matchBit = (match >> 7) & 1
        match <<= 1
        const bit = decodeBit(base + ((1 + matchBit) << 8) + symbol)
        symbol = (symbol << 1) | bit
        if (bit !== matchBit) break
      }
    }
    while (symbol < 0x100) symbol = (symbol << 1) | decodeBit(base + symbol)
    window.put(symbol & 0xff)
    state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6
  }

  function decodeLength(base: number, posState: number): number {
    if (decodeBit(base) === 0) return 2 + decodeTree(base + 2 + (posState << 3), 3)
    if (decodeBit(base + 1) === 0) return 10 + decodeTree(base + 130 + (posState << 3), 3)
    return 18 + decodeTree(base + 258, 8)
  }

  function decodeDistance(length: number): number {
    const slot = decodeTree(at.slots + (Math.min(length - 2, 3) << 6), 6)
    if (slot < 4) return slot
    const bits = (slot >> 1) - 1
    const distance = (2 | (slot & 1)) * 2 ** bits
    if (slot < 14) return distance + decodeReverse(at.special + distance - slot, bits)
    return distance + decodeDirect(bits - 4) * 16 + decodeReverse(at.align, 4)
  }

  /** Decodes the distance and returns the length of a repetition. */
  function decodeRepetition(posState: number): number {
    if (decodeBit(at.isRep + state) === 0) {
      ;[rep3, rep2, rep1] = [rep2, rep1, rep0]
      const length = decodeLength(at.lengths, posState)
      state = state < 7 ? 7 : 10
      rep0 = decodeDistance(length)
      return length
    }
    if (decodeBit(at.isRep0 + state) === 0) {
      if (decodeBit(at.isRep0Long + (state << 4) + posState) === 0) {
        state = state < 7 ? 9 : 11
        return 1
      }
    } else if (decodeBit(at.isRep1 + state) === 0) {
      ;[rep1, rep0] = [rep0, rep1]
    } else if (decodeBit(at.isRep2 + state) === 0) {
      ;[rep2, rep1, rep0] = [rep1, rep0, rep2]
    } else {
      ;[rep3, rep2, rep1, rep0] = [rep2, rep1, rep0, rep3]
    }
    state = state < 7 ? 8 : 11
    return decodeLength(at.repLengths, posState)
  }

  /** The next repetition; a length of 0 stands for a literal. */
  function decode(): { length: number; distance: number } {
    const position = window.position()
    const posState = position & posMask
    if (decodeBit(at.isMatch + (state << 4) + posState) === 0) {
      decodeLiteral(position)
      return literal
    }
    const length = decodeRepetition(posState)
    return { length, distance: rep0 }
  }

  return { decode, status }
}

const literal = { length: 0, distance: 0 }

function openRangeDecoder(probabilities: Uint16Array, nextByte: () => number) {
  const status = { isCut: false }
  let range = 0xffff_ffff
  let code = 0

  function shift() {
    let byte = nextByte()
    if (byte === -1) {
      status.isCut = true
      byte = 0
    }
    code = ((code << 8) | byte) >>> 0
  }

  function normalize() {
    if (range >= topValue) return
    range = (range << 8) >>> 0
    shift()
  }

  function decodeBit(index: number): number {
    normalize()
    const probability = probabilities[index] as number
    const bound = (range >>> 11) * probability
    if (code < bound) {
      range = bound
      probabilities[index] = probability + ((2048 - probability) >> 5)
      return 0
    }
    range -= bound
    code -= bound
    probabilities[index] = probability - (probability >> 5)
    return 1
  }

  function decodeTree(base: number, bits: number): number {
    let symbol = 1
    for (let n = 0; n < bits; n++) symbol = (symbol << 1) | decodeBit(base + symbol)
    return symbol - 2 ** bits
  }

  function decodeReverse(base: number, bits: number): number {
    let symbol = 1
    let value = 0
    for (let n = 0; n < bits; n++) {
      const bit = decodeBit(base + symbol)
      symbol = (symbol << 1) | bit
      value |= bit << n
    }
    return value
  }

  function decodeDirect(bits: number): number {
    let value = 0
    for (let n = 0; n < bits; n++) {
      normalize()
      range >>>= 1
      const bit = code >= range ? 1 : 0
      if (bit === 1) code -= range
      value = value * 2 + bit
    }
    return value
  }

  // The first byte is a zero, which the head was checked for.
  nextByte()
  for (let n = 0; n < 4; n++) shift()
  return { decodeBit, decodeTree, decodeReverse, decodeDirect, status }
}

/** The last bytes of the output, in a ring that grows with it up to a limit. */
function openWindow(maxBytes: number) {
  let ring = Buffer.alloc(Math.min(maxBytes, 2 * pieceBytes))
  let position = 0
  let taken = 0

  /** Grows before the first turn of the ring, while its bytes are in order. */
  function grow() {
    const larger = Buffer.alloc(Math.min(maxBytes, ring.length * 2))
    ring.copy(larger)
    ring = larger
  }

  function put(byte: number) {
    if (position === ring.length && ring.length < maxBytes) grow()
    ring[position % ring.length] = byte
    position++
  }

  /** The byte at a distance; 0 is the last one. */
  const look = (distance: number) => ring[(position - 1 - distance) % ring.length] ?? 0

  return {
    put,
    look,
    copy(distance: number, length: number) {
      for (let n = 0; n < length; n++) put(look(distance))
    },
    position: () => position,
    kept: () => (ring.length < maxBytes ? position : Math.min(position, ring.length)),
    pending: () => position - taken,
    /** The output that was not taken yet, copied. */
    *take(): Generator<Buffer> {
      while (taken < position) {
        const start = taken % ring.length
        const piece = Buffer.from(ring.subarray(start, Math.min(ring.length, start + position - taken)))
        taken += piece.length
        yield piece
      }
    },
  }
}
