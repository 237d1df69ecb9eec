/**
 * JPEGs that show one picture when they are decoded in full, and another one when a decoder makes them smaller by
 * leaving out frequencies. Decoders cut values beyond black and white only after the frequencies are put together, so a
 * few pixels far beyond white raise the mean of a block that a small decoding shows, and not the one that is seen.
 */

/** Pictures in RGB, of as many pixels as the JPEG has blocks of 8 x 8. */
type Blocks = { side: number; pixels: Buffer }

/** The picture that a full decoding shows, and the one that smaller decodings show. */
export type Steering = { inFull: Blocks; small: Blocks }

const quantum = 16
/** Pixels of a block that lie beyond black or white. */
const spikes = 8
/** Within this range a mean can be kept while the spikes are cut. */
const range = { least: 34, most: 221 }

/** Encodes a baseline JPEG of 8 times the side of both pictures. */
export function makeSteeredJpeg({ inFull, small }: Steering): Buffer {
  const { side } = inFull
  const [shown, hidden] = [toYcc(inFull), toYcc(small)]
  const bits = makeBitWriter()
  const previous = [0, 0, 0]
  const toCoefficients = makeTransform()
  for (let block = 0; block < side * side; block++) {
    for (let component = 0; component < 3; component++) {
      const at = block * 3 + component
      const coefficients = toCoefficients(shown[at] ?? 0, hidden[at] ?? 0)
      previous[component] = writeBlock(bits, coefficients, previous[component] ?? 0)
    }
  }
  const pixels = side * 8
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xdb, [0, ...Array.from({ length: 64 }, () => quantum)]),
    segment(0xc0, [8, pixels >> 8, pixels & 255, pixels >> 8, pixels & 255, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]),
    segment(0xc4, [0x00, ...toCodes(12)]),
    segment(0xc4, [0x10, ...toCodes(251)]),
    segment(0xda, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
    bits.finish(),
    Buffer.from([0xff, 0xd9]),
  ])
}

const segment = (marker: number, body: number[]) =>
  Buffer.from([0xff, marker, (body.length + 2) >> 8, (body.length + 2) & 255, ...body])

function toYcc({ pixels }: Blocks): Float64Array {
  const found = new Float64Array(pixels.length)
  for (let i = 0; i < pixels.length; i += 3) {
    const [red, green, blue] = [pixels[i] ?? 0, pixels[i + 1] ?? 0, pixels[i + 2] ?? 0]
    const y = 0.299 * red + 0.587 * green + 0.114 * blue
    found[i] = y
    found[i + 1] = 128 + (blue - y) / 1.772
    found[i + 2] = 128 + (red - y) / 1.402
  }
  return found
}

/** The mean of a block, and the codes of its other coefficients. */
type Coefficients = { mean: number; others: Code[] }

/** Makes the function for the coefficients of a block. Blocks of the same colours, often all of a picture, share them. */
function makeTransform() {
  const found = new Map<number, Map<number, Coefficients>>()
  return (inFull: number, small: number): Coefficients => {
    const ofSame = found.get(inFull) ?? new Map<number, Coefficients>()
    found.set(inFull, ofSame)
    const known = ofSame.get(small)
    if (known !== undefined) return known
    const values = transform(toBlock(inFull, small)).map((value) => Math.round(value / quantum))
    const coefficients = { mean: values[0] ?? 0, others: toCodesOfBlock(values) }
    ofSame.set(small, coefficients)
    return coefficients
  }
}

/** A block whose mean is `small` until values beyond black and white are cut, and `inFull` from then on. */
function toBlock(inFull: number, small: number): number[] {
  const mean = Math.min(range.most, Math.max(range.least, inFull))
  const limit = small > mean ? 255 : 0
  const rest = (mean * 64 - limit * spikes) / (64 - spikes)
  const spike = (small * 64 - rest * (64 - spikes)) / spikes
  // Each row and column has a single spike, so that together they look like a fine grain.
  return Array.from({ length: 64 }, (_, i) => (i % 8 === ((i >> 3) * 3) % 8 ? spike : rest))
}

const cosines = Array.from({ length: 64 }, (_, i) => {
  const [u, x] = [i >> 3, i & 7]
  return (u === 0 ? Math.SQRT1_2 : 1) * 0.5 * Math.cos(((2 * x + 1) * u * Math.PI) / 16)
})

/** The two-dimensional cosine transform of a block. */
function transform(values: number[]): number[] {
  const rows = Array.from({ length: 64 }, (_, i) => {
    const [y, u] = [i >> 3, i & 7]
    let sum = 0
    for (let x = 0; x < 8; x++) sum += ((values[y * 8 + x] ?? 0) - 128) * (cosines[u * 8 + x] ?? 0)
    return sum
  })
  return Array.from({ length: 64 }, (_, i) => {
    const [v, u] = [i >> 3, i & 7]
    let sum = 0
    for (let y = 0; y < 8; y++) sum += (rows[y * 8 + u] ?? 0) * (cosines[v * 8 + y] ?? 0)
    return sum
  })
}

const zigzag = toZigzag()

function toZigzag(): number[] {
  const cells = Array.from({ length: 64 }, (_, i) => ({ at: i, x: i & 7, y: i >> 3 }))
  const along = ({ x, y }: { x: number; y: number }) => ((x + y) % 2 === 0 ? x : y)
  return cells.sort((a, b) => a.x + a.y - (b.x + b.y) || along(a) - along(b)).map(({ at }) => at)
}

/** A table in which the code of each symbol is the symbol itself, in eight bits. */
function toCodes(count: number): number[] {
  const lengths = Array.from({ length: 16 }, (_, i) => (i === 7 ? count : 0))
  return [...lengths, ...Array.from({ length: count }, (_, i) => i)]
}

type BitWriter = ReturnType<typeof makeBitWriter>

function makeBitWriter() {
  let bytes = Buffer.alloc(2 ** 16)
  let length = 0
  let held = 0
  let count = 0
  /** At most 24 bits: up to seven wait for the next byte. */
  const write = (value: number, bits: number) => {
    if (length + 8 > bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(bytes.length)])
    held = (held << bits) | (value & ((1 << bits) - 1))
    for (count += bits; count >= 8; count -= 8) {
      const byte = (held >>> (count - 8)) & 0xff
      bytes[length++] = byte
      if (byte === 0xff) bytes[length++] = 0
    }
    held &= (1 << count) - 1
  }
  return {
    write,
    finish() {
      if (count > 0) write(0xff, 8 - count)
      return bytes.subarray(0, length)
    },
  }
}

/** Writes a block and returns its mean, from which the next block of the component is predicted. */
function writeBlock(bits: BitWriter, { mean, others }: Coefficients, previous: number): number {
  const { value, length } = toCode(0, mean - previous)
  bits.write(value, length)
  for (const code of others) bits.write(code.value, code.length)
  return mean
}

type Code = { value: number; length: number }

/** The codes of all coefficients of a block but the first. */
function toCodesOfBlock(coefficients: number[]): Code[] {
  const codes: Code[] = []
  let run = 0
  for (let k = 1; k < 64; k++) {
    const value = coefficients[zigzag[k] ?? 0] ?? 0
    if (value === 0) {
      run++
      continue
    }
    for (; run > 15; run -= 16) codes.push({ value: 0xf0, length: 8 })
    codes.push(toCode(run, value))
    run = 0
  }
  if (run > 0) codes.push({ value: 0, length: 8 })
  return codes
}

/** A code is its symbol, which is the number of zeros before the value and the number of its bits, and those bits. */
function toCode(run: number, value: number): Code {
  const size = value === 0 ? 0 : 32 - Math.clz32(Math.abs(value))
  const symbol = (run << 4) | size
  return { value: (symbol << size) | (value < 0 ? value + (1 << size) - 1 : value), length: 8 + size }
}
