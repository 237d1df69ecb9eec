import { hasTarChecksum, tarBlockBytes } from '../../../../domain/content/tar-header.ts'
import type { Source } from '../source.ts'

export type TarHeader = {
  at: number
  dataAt: number
  path: string
  type: string
  /** The sizes that programs read from the field, without repetition. */
  sizes: number[]
  /** Programs may disagree about the size, or refuse the header. */
  hasOddSize: boolean
  /** Size and checksum are octal numbers, the name is not empty, and the signature is there, as ClamAV wants it. */
  isPlain: boolean
  block: Buffer
}

/** Records of an extended header, and the names that other entries gave to the next one. */
export type Extended = {
  records: Map<string, string>
  /** The pairs of position and size in records of the first sparse form, in order. */
  sparsePairs: string[]
  path?: string
}

const octal = /^ *([0-7]*) *(?:\0.*)?$/s
const maxSize = Number.MAX_SAFE_INTEGER

/** A number of a header: octal digits, or 95 bits behind a byte that is not text. */
export function readNumber(field: Buffer): { values: number[]; isOctal: boolean; isOdd: boolean } {
  const first = field[0] ?? 0
  if (first >= 0x80) {
    const value = BigInt(`0x${field.subarray(1).toString('hex')}`)
    const isNegative = first !== 0x80
    return { values: [isNegative ? 0 : toSafe(value)], isOctal: false, isOdd: isNegative }
  }
  const text = field.toString('latin1')
  const digits = octal.exec(text)?.[1]
  // ClamAV stops at an empty field.
  if (digits === '') return { values: [0], isOctal: false, isOdd: false }
  if (digits !== undefined) return { values: [parseInt(digits, 8)], isOctal: true, isOdd: false }
  // Programs stop at the first character that is no digit, or allow prefixes and separators, or take 0.
  const loose = parseInt(text.replace(/^[\s\0]*[-+]?(?:0o)?/i, ''), 8)
  const python = parseInt(text.replaceAll('_', '').replace(/^\s*\+?(?:0o)?/i, ''), 8)
  const values = [loose, python, 0].map((value) => (Number.isSafeInteger(value) ? Math.max(0, value) : 0))
  return { values: [...new Set(values)], isOctal: false, isOdd: true }
}

const toSafe = (value: bigint) => (value > BigInt(maxSize) ? maxSize : Number(value))

const readText = (field: Buffer) => {
  const end = field.indexOf(0)
  return (end === -1 ? field : field.subarray(0, end)).toString('utf8')
}

/** Reads the header in a block; undefined when the block is none. */
export function readHeader(block: Buffer, at: number): TarHeader | undefined {
  if (!hasTarChecksum(block)) return undefined
  const size = readNumber(block.subarray(124, 136))
  const name = readText(block.subarray(0, 100))
  const mark = block.toString('latin1', 257, 263)
  const prefix = mark === 'ustar\0' ? readText(block.subarray(345, 500)) : ''
  return {
    at,
    dataAt: at + tarBlockBytes,
    path: prefix === '' ? name : `${prefix}/${name}`,
    type: block.toString('latin1', 156, 157),
    sizes: size.values,
    hasOddSize: size.isOdd,
    isPlain: mark.startsWith('ustar') && size.isOctal && readNumber(block.subarray(148, 156)).isOctal && name !== '',
    block,
  }
}

/** The end of the data of a member, which fills its last block with zeros. */
export const toBlockEnd = (end: number) => Math.ceil(end / tarBlockBytes) * tarBlockBytes

/** The positions of all blocks that are headers, found in one pass; at most `maxCount`. */
export function listHeaders(source: Source, maxCount: number): number[] {
  const stepBytes = 2 ** 16
  const found: number[] = []
  for (let at = 0; at < source.bytes && found.length < maxCount; at += stepBytes) {
    const bytes = source.read(at, at + stepBytes)
    for (let offset = 0; offset + tarBlockBytes <= bytes.length; offset += tarBlockBytes) {
      if (hasTarChecksum(bytes.subarray(offset, offset + tarBlockBytes))) found.push(at + offset)
    }
  }
  return found
}

/**
 * Adds the records of an extended header, `length key=value` in lines, to those that are known. Returns undefined when
 * they are malformed or contradict each other: programs then differ in what they read.
 */
export function readRecords(bytes: Buffer, known: Extended): Extended | undefined {
  const extended: Extended = { ...known, records: new Map(known.records), sparsePairs: [...known.sparsePairs] }
  const own = new Map<string, string>()
  for (let at = 0; at < bytes.length && bytes[at] !== 0; ) {
    const blank = bytes.indexOf(0x20, at)
    const digits = blank === -1 || blank - at > 10 ? '' : bytes.toString('latin1', at, blank)
    const length = /^[1-9]\d*$/.test(digits) ? Number(digits) : 0
    if (length === 0) return undefined
    const record = bytes.subarray(blank + 1, at + length)
    const equals = record.indexOf(0x3d)
    if (equals < 1 || at + length > bytes.length || record.at(-1) !== 0x0a) return undefined
    const key = record.toString('utf8', 0, equals)
    const value = record.toString('utf8', equals + 1, record.length - 1)
    if (key === 'GNU.sparse.offset' || key === 'GNU.sparse.numbytes') extended.sparsePairs.push(value)
    else if (own.has(key) && own.get(key) !== value && isStructural(key)) return undefined
    own.set(key, value)
    extended.records.set(key, value)
    at += length
  }
  return extended
}

/** Records that decide where data begins and ends. */
export const isStructural = (key: string) => key === 'size' || key.startsWith('GNU.sparse.') || key === 'SUN.holesdata'
