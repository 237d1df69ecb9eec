import type { Bytes } from './pdf-filters.ts'

/** How rows of samples were changed before they were packed. */
export type Predictor = { predictor: number; colors: number; bitsPerSample: number; columns: number }

/** A row of a picture is far shorter. */
const maxRowBytes = 2 ** 24

/** Undoes a predictor of PNG (10 and above) or TIFF (2). */
export async function* undoPredictor(input: Bytes, settings: Predictor): AsyncGenerator<Buffer> {
  const { predictor, colors, bitsPerSample, columns } = settings
  const pixelBytes = Math.max(1, Math.ceil((colors * bitsPerSample) / 8))
  const rowBytes = Math.ceil((colors * bitsPerSample * columns) / 8)
  if (predictor < 2 || !(rowBytes >= 1) || rowBytes > maxRowBytes) {
    yield* input
    return
  }
  const isPng = predictor >= 10
  let above: Buffer = Buffer.alloc(rowBytes)
  for await (const rows of readRows(input, isPng ? rowBytes + 1 : rowBytes)) {
    const output: Buffer[] = []
    for (const row of rows) {
      const samples = Buffer.from(isPng ? row.subarray(1) : row)
      if (isPng) undoPngRow(row[0] ?? 0, samples, above, pixelBytes)
      else undoTiffRow(samples, settings)
      output.push(samples)
      above = samples
    }
    yield Buffer.concat(output)
  }
}

/** Yields the rows of each piece. The last row may be shorter. */
async function* readRows(input: Bytes, bytes: number): AsyncGenerator<Buffer[]> {
  let rest: Buffer = Buffer.alloc(0)
  let parts: Buffer[] = []
  let partBytes = 0
  for await (const piece of input) {
    parts.push(piece)
    partBytes += piece.length
    if (partBytes < bytes) continue
    rest = Buffer.concat(parts)
    const rows: Buffer[] = []
    let at = 0
    for (; at + bytes <= rest.length; at += bytes) rows.push(rest.subarray(at, at + bytes))
    rest = rest.subarray(at)
    parts = [rest]
    partBytes = rest.length
    yield rows
  }
  if (partBytes > 0) yield [Buffer.concat(parts)]
}

function undoPngRow(kind: number, row: Buffer, above: Buffer, pixelBytes: number) {
  for (let n = 0; n < row.length; n++) {
    const left = n >= pixelBytes ? (row[n - pixelBytes] as number) : 0
    const up = above[n] ?? 0
    const corner = n >= pixelBytes ? (above[n - pixelBytes] ?? 0) : 0
    row[n] = ((row[n] as number) + predict(kind, left, up, corner)) & 255
  }
}

function predict(kind: number, left: number, up: number, corner: number): number {
  switch (kind) {
    case 1:
      return left
    case 2:
      return up
    case 3:
      return (left + up) >> 1
    case 4: {
      const estimate = left + up - corner
      const [toLeft, toUp, toCorner] = [Math.abs(estimate - left), Math.abs(estimate - up), Math.abs(estimate - corner)]
      if (toLeft <= toUp && toLeft <= toCorner) return left
      return toUp <= toCorner ? up : corner
    }
    default:
      return 0
  }
}

/** Adds the sample on the left to each. Samples of fewer than 8 bits lie side by side in a byte. */
function undoTiffRow(row: Buffer, { colors, bitsPerSample }: Predictor) {
  if (bitsPerSample === 8) {
    for (let n = colors; n < row.length; n++) row[n] = ((row[n] as number) + (row[n - colors] as number)) & 255
  } else if (bitsPerSample === 16) {
    for (let n = 2 * colors; n + 1 < row.length; n += 2) {
      row.writeUInt16BE((row.readUInt16BE(n) + row.readUInt16BE(n - 2 * colors)) & 0xffff, n)
    }
  } else {
    undoSmallSamples(row, colors, bitsPerSample)
  }
}

function undoSmallSamples(row: Buffer, colors: number, bits: number) {
  const mask = (1 << bits) - 1
  const previous = new Array<number>(Math.min(colors, 64)).fill(0)
  for (let n = 0; n < Math.floor((row.length * 8) / bits); n++) {
    const byte = Math.floor((n * bits) / 8)
    const shift = 8 - bits - ((n * bits) % 8)
    if (shift < 0) return
    const value = ((((row[byte] as number) >> shift) & mask) + (previous[n % colors] ?? 0)) & mask
    previous[n % colors] = value
    row[byte] = ((row[byte] as number) & ~(mask << shift)) | (value << shift)
  }
}
