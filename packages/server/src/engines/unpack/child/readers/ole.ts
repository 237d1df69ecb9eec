import type { Doubt } from '../../../../domain/ports/engines.ts'
import { hasSignature, type Members, type Reader, type Reading, readFirst, type Source } from '../reader.ts'
import { type OleStream, readOleFile } from './ole-structure.ts'

const signature = Buffer.from('d0cf11e0a1b11ae1', 'hex')

/**
 * Reads OLE compound files: older Office documents, MSI packages and Outlook messages. Gives the streams and the files
 * that packages embed, and tells of documents with a password.
 */
export const oleReader: Reader = {
  name: 'OLE',
  recognizes: (source) => hasSignature(source, signature),
  read: readOle,
}

async function readOle(source: Source, members: Members): Promise<Reading> {
  const file = readOleFile(source)
  if (file === undefined) return { accounted: [], doubts: [], needsSevenZip: true }
  const doubts = new Set<Doubt>()
  // ClamAV reads the streams of a file of the usual form whose chains are in order.
  const isSeen = file.hasUsualSizes && !file.isDamaged
  for (const stream of file.streams) {
    if (isEncryptedStream(stream)) doubts.add('EncryptedContent')
    await members.give({ path: toPath(stream.name), pieces: stream.pieces(), isSeen })
    if (stream.name.endsWith('Ole10Native')) await giveNative(stream, members)
  }
  if (file.isDamaged) doubts.add('UnsupportedContainer')
  return { accounted: [{ start: 0, end: file.end }], doubts: [...doubts], needsSevenZip: file.isDamaged }
}

/** Names of streams may begin with a control character. */
const toPath = (name: string) =>
  Array.from(name, (char) => (char < ' ' ? `[${char.charCodeAt(0)}]` : char)).join('') || '[stream]'

const headBytes = 16_384

const readHead = (stream: OleStream): Buffer => readFirst(stream.pieces(), headBytes)

/** Gives the file in native data: behind its labels where it is a package, and behind its length in any case. */
async function giveNative(stream: OleStream, members: Members) {
  const found = findPackagedFile(readHead(stream), 4)
  if (found !== undefined) {
    await members.give({
      path: found.name || '[package]',
      pieces: cut(stream.pieces(found.start), found.end - found.start),
    })
  }
  await members.give({ path: '[native data]', pieces: stream.pieces(4) })
}

/** Whether the stream belongs to a document with a password. */
function isEncryptedStream(stream: OleStream): boolean {
  switch (stream.name) {
    case 'EncryptedPackage':
    case 'EncryptedSummary':
      return true
    case 'WordDocument':
      return isEncryptedWord(readHead(stream))
    case 'Workbook':
    case 'Book':
      return isEncryptedWorkbook(readHead(stream))
    case 'Current User':
      return isEncryptedSlides(readHead(stream))
    default:
      return false
  }
}

/** The information block of Word has a flag for encryption. */
const isEncryptedWord = (head: Buffer) =>
  head.length >= 12 &&
  [0xa5ec, 0xa5dc, 0xa697, 0xa699].includes(head.readUInt16LE(0)) &&
  (head.readUInt16LE(10) & 0x0100) !== 0

const filePass = 0x002f
const maxRecords = 64

/** A record with the check of the password follows soon behind the first one of a workbook. */
function isEncryptedWorkbook(head: Buffer): boolean {
  let at = 0
  for (let count = 0; count < maxRecords && at + 4 <= head.length; count++) {
    if (head.readUInt16LE(at) === filePass) return true
    at += 4 + head.readUInt16LE(at + 2)
  }
  return false
}

const encryptedToken = 0xf3d1_c4df

const isEncryptedSlides = (head: Buffer) => head.length >= 16 && head.readUInt32LE(12) === encryptedToken

/** Yields the first `bytes` bytes of pieces. */
export function* cut(pieces: Iterable<Buffer>, bytes: number): Generator<Buffer> {
  let rest = bytes
  for (const piece of pieces) {
    if (rest <= 0) return
    yield piece.subarray(0, rest)
    rest -= piece.length
  }
}

/** Where the embedded file lies in the data of a package. */
type PackageRange = { name: string; start: number; end: number }

const maxText = 4096

/**
 * Finds the file in the native data of a package, which begins with a label and two paths; `at` is the position of the
 * mark 2 before them. Undefined when the data has another form.
 */
export function findPackagedFile(head: Buffer, at: number): PackageRange | undefined {
  if (head.length < at + 8 || head.readUInt16LE(at) !== 2) return undefined
  const label = readText(head, at + 2)
  const path = label === undefined ? undefined : readText(head, label.end)
  if (label === undefined || path === undefined || path.end + 8 > head.length) return undefined
  // Two numbers precede the length of the second path.
  const pathAt = path.end + 8
  const sizeAt = pathAt + head.readUInt32LE(path.end + 4)
  if (sizeAt + 4 > head.length) return undefined
  const start = sizeAt + 4
  return { name: label.text, start, end: start + head.readUInt32LE(sizeAt) }
}

function readText(head: Buffer, at: number): { text: string; end: number } | undefined {
  const end = head.indexOf(0, at)
  if (end === -1 || end - at > maxText) return undefined
  return { text: head.toString('latin1', at, end), end: end + 1 }
}
