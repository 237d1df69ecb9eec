import { isMixed, type Members, type Reader, type Reading } from '../reader.ts'
import type { Source } from '../source.ts'
import { cut } from './ole.ts'
import { findPackagedFile } from './ole-package.ts'
import { decodeObjectData, findRtfEnd } from './rtf-data.ts'

const mark = Buffer.from('{\\rt')
const dataMark = Buffer.from('\\objdata')
const maxObjects = 5000
const headBytes = 8192

/** Reads RTF: gives the data of embedded objects, and the files in them. */
export const rtfReader: Reader = {
  name: 'RTF',
  recognizes: (source) => source.read(0, mark.length).equals(mark),
  read: readRtf,
}

async function readRtf(source: Source, members: Members): Promise<Reading> {
  let count = 0
  for (let at = source.find(dataMark, 0); at !== -1; at = source.find(dataMark, at + dataMark.length)) {
    if (++count > maxObjects) return { accounted: [{ start: 0, end: source.bytes }], doubts: ['ScanLimitExceeded'] }
    const start = at + dataMark.length
    const isNested = await giveObject(members, () => decodeObjectData(source, start, { takesNested: true }), count)
    if (isNested) await giveObject(members, () => decodeObjectData(source, start, { takesNested: false }), count)
  }
  const body = { start: 0, end: findRtfEnd(source) }
  return { accounted: [body], searched: isMixed(source, body) ? [body] : [], doubts: [] }
}

type Decoding = ReturnType<typeof decodeObjectData>

/** Gives the data of an object and the native data in it. Returns whether groups are within the data. */
async function giveObject(members: Members, decode: () => Decoding, number: number): Promise<boolean> {
  const whole = decode()
  await members.give({ path: `object ${number}`, pieces: whole.pieces })
  const head = readHead(decode().pieces)
  const native = findNativeData(head)
  if (native !== undefined) {
    const pieces = () => cut(skip(decode().pieces, native.start), native.bytes)
    await members.give({ path: `object ${number} ${native.className}`, pieces: pieces() })
    const file = findPackagedFile(head, native.start)
    if (file !== undefined) {
      const inner = cut(skip(decode().pieces, file.start), file.end - file.start)
      await members.give({ path: file.name || '[package]', pieces: inner })
    }
  }
  return whole.hasNested()
}

function readHead(pieces: Iterable<Buffer>): Buffer {
  const parts: Buffer[] = []
  let bytes = 0
  for (const piece of pieces) {
    parts.push(piece)
    bytes += piece.length
    if (bytes >= headBytes) break
  }
  return Buffer.concat(parts).subarray(0, headBytes)
}

function* skip(pieces: Iterable<Buffer>, bytes: number): Generator<Buffer> {
  let rest = bytes
  for (const piece of pieces) {
    const from = Math.min(rest, piece.length)
    rest -= from
    yield piece.subarray(from)
  }
}

/** An embedded object of OLE 1: version, kind, three texts with their lengths, and the length of the native data. */
function findNativeData(head: Buffer): { className: string; start: number; bytes: number } | undefined {
  if (head.length < 24) return undefined
  let at = 8
  let className = ''
  for (let n = 0; n < 3; n++) {
    if (at + 4 > head.length) return undefined
    const length = head.readUInt32LE(at)
    if (length > head.length) return undefined
    if (n === 0) className = head.toString('latin1', at + 4, at + 4 + Math.max(0, length - 1))
    at += 4 + length
  }
  return at + 4 > head.length ? undefined : { className, start: at + 4, bytes: head.readUInt32LE(at) }
}
