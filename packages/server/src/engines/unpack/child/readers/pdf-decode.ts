import type { Source } from '../reader.ts'
import type { Decryption } from './pdf-encryption.ts'
import { type Bytes, type Damage, decodeAscii85, decodeHex, decodeLzw, decodeRuns } from './pdf-filters.ts'
import { decodeFlate } from './pdf-flate.ts'
import type { Objects, PdfStream } from './pdf-objects.ts'
import { type Dictionary, getValue, isDictionary, type PdfValue } from './pdf-values.ts'

/** One filter of a stream with its parameters. */
export type Filter = { name: string; parameters: Dictionary }

const fullNames: Record<string, string> = {
  Fl: 'FlateDecode',
  AHx: 'ASCIIHexDecode',
  A85: 'ASCII85Decode',
  LZW: 'LZWDecode',
  RL: 'RunLengthDecode',
  CCF: 'CCITTFaxDecode',
  DCT: 'DCTDecode',
}

const pictureFilters = ['DCTDecode', 'JPXDecode', 'CCITTFaxDecode', 'JBIG2Decode']

export const isPictureFilter = (filter: Filter | undefined) =>
  filter !== undefined && pictureFilters.includes(filter.name)

const maxFilters = 32
/** Programs differ in which of several definitions they take. */
const maxReadings = 4

/** The lists of filters that a stream may have: several where a key or an object is there more than once. */
export async function listFilterChains(dictionary: Dictionary, objects: Objects): Promise<Filter[][]> {
  const named = await resolveAll(dictionary, ['Filter'], objects)
  // Poppler reads the short name of the key, too, which otherwise names a file outside of the PDF.
  const filters = named.every((filter) => filter === null) ? await resolveAll(dictionary, ['F'], objects) : named
  const parameters = await resolveAll(dictionary, ['DecodeParms', 'DP', 'DecodeParams'], objects)
  const chains: Filter[][] = []
  for (const filter of filters) {
    for (const parameter of parameters) {
      if (chains.length < maxReadings) chains.push(await toChain(filter, parameter, objects))
    }
  }
  return chains
}

async function resolveAll(dictionary: Dictionary, keys: string[], objects: Objects): Promise<PdfValue[]> {
  const values = keys.flatMap((key) => dictionary.get(key) ?? []).slice(0, maxReadings)
  const resolved: PdfValue[] = []
  for (const value of values) resolved.push(...(await objects.resolve(value)))
  return resolved.length === 0 ? [null] : resolved.slice(0, maxReadings)
}

async function toChain(filter: PdfValue, parameter: PdfValue, objects: Objects): Promise<Filter[]> {
  const names = Array.isArray(filter) ? filter : typeof filter === 'string' ? [filter] : []
  const list = Array.isArray(parameter) ? parameter : [parameter]
  const chain: Filter[] = []
  for (const [n, item] of names.slice(0, maxFilters).entries()) {
    const name = (await objects.resolve(item)).at(-1)
    const own = (await objects.resolve(list[n] ?? null)).at(-1) ?? null
    const text = typeof name === 'string' ? name : ''
    chain.push({
      name: fullNames[text] ?? text,
      parameters: isDictionary(own) ? await resolveEach(own, objects) : new Map(),
    })
  }
  return chain
}

/** The same dictionary without references in it. */
async function resolveEach(dictionary: Dictionary, objects: Objects): Promise<Dictionary> {
  const resolved: Dictionary = new Map()
  for (const [key, values] of [...dictionary].slice(0, 32)) {
    resolved.set(key, [(await objects.resolve(values[0] ?? null)).at(-1) ?? null])
  }
  return resolved
}

/** Decodes the bytes of a stream up to the first filter that is not known, or that makes a picture. */
export function decodeStream(open: () => Bytes, chain: Filter[], damage: Damage): Bytes {
  let reopen = open
  for (const filter of chain) {
    const inner = reopen
    const decode = chooseDecoder(filter, damage)
    if (decode === undefined) {
      damage.isDamaged = true
      break
    }
    reopen = () => decode(inner)
  }
  return reopen()
}

/** Larger encrypted streams are not decrypted. */
const maxEncryptedBytes = 64 * 2 ** 20

/** Opens the bytes of a stream, decrypted where the PDF is encrypted. Undefined when they are too many for that. */
export function openStreamBytes(
  source: Source,
  stream: PdfStream & { stop: number },
  decryption: Decryption | undefined,
  chain: Filter[],
): (() => Bytes) | undefined {
  const { start, stop, object, generation, dictionary } = stream
  if (decryption === undefined) return () => source.pieces(start, stop)
  const type = dictionary === undefined ? null : getValue(dictionary, 'Type')
  if (type === 'XRef' || (type === 'Metadata' && decryption.hasClearMetadata)) return () => source.pieces(start, stop)
  if (stop - start > maxEncryptedBytes) return undefined
  const crypt = chain.find(({ name }) => name === 'Crypt')
  const named = crypt === undefined ? null : (getValue(crypt.parameters, 'Name') ?? 'Identity')
  const filter = typeof named === 'string' ? { filter: named } : {}
  const isEmbedded = type === 'EmbeddedFile'
  return () => [decryption.decrypt(source.read(start, stop), { object, generation, isEmbedded, ...filter })]
}

type Decode = (open: () => Bytes) => Bytes

function chooseDecoder({ name, parameters }: Filter, damage: Damage): Decode | undefined {
  switch (name) {
    case 'FlateDecode':
      return (open) => undoPredictorOf(decodeFlate(open, damage), parameters)
    case 'LZWDecode':
      return (open) =>
        undoPredictorOf(decodeLzw(open(), toNumber(getValue(parameters, 'EarlyChange'), 1) === 0 ? 0 : 1), parameters)
    case 'ASCIIHexDecode':
      return (open) => decodeHex(open(), damage)
    case 'ASCII85Decode':
      return (open) => decodeAscii85(open(), damage)
    case 'RunLengthDecode':
      return (open) => decodeRuns(open())
    case 'Crypt':
      // Decryption comes before all filters.
      return (open) => open()
    default:
      return undefined
  }
}

function undoPredictorOf(bytes: Bytes, parameters: Dictionary): Bytes {
  const predictor = toNumber(getValue(parameters, 'Predictor'), 1)
  if (predictor < 2) return bytes
  return undoPredictor(bytes, {
    predictor,
    colors: clamp(toNumber(getValue(parameters, 'Colors'), 1), 1, 64),
    bitsPerSample: clamp(toNumber(getValue(parameters, 'BitsPerComponent'), 8), 1, 16),
    columns: clamp(toNumber(getValue(parameters, 'Columns'), 1), 1, 2 ** 24),
  })
}

function toNumber(value: PdfValue, otherwise: number): number {
  return typeof value === 'number' ? Math.trunc(value) : otherwise
}

const clamp = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value))

/** How rows of samples were changed before they were packed. */
type Predictor = { predictor: number; colors: number; bitsPerSample: number; columns: number }

/** A row of a picture is far shorter. */
const maxRowBytes = 2 ** 24

/** Undoes a predictor of PNG (10 and above) or TIFF (2). */
async function* undoPredictor(input: Bytes, settings: Predictor): AsyncGenerator<Buffer> {
  const { predictor, colors, bitsPerSample, columns } = settings
  const pixelBytes = Math.max(1, Math.ceil((colors * bitsPerSample) / 8))
  const rowBytes = Math.ceil((colors * bitsPerSample * columns) / 8)
  if (!(rowBytes >= 1) || rowBytes > maxRowBytes) {
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
