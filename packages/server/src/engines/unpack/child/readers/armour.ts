import { isOrdinaryKey } from '../../../../domain/content/keys.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Members, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'
import { hasControls, isLineStart, listLines, readLine } from './text-lines.ts'
import { decodeBase64 } from './transfer-encodings.ts'

const begin = Buffer.from('-----BEGIN ')
const pgpBegin = Buffer.from('-----BEGIN PGP ')
/** Text has no control characters here. */
const firstBytes = 32
const maxBlocks = 10_000
/** Keys and certificates are smaller; larger blocks are given without a look at their content. */
const maxKeyBytes = 65_536
const minDecodedBytes = 8

/** Reads ASCII armour of OpenPGP, PEM and age, wherever it stands in text. */
export const armourReader: Reader = {
  name: 'ASCII armour',
  // GnuPG skips any bytes in front of its armour.
  recognizes: (source) =>
    (!hasControls(source.read(0, firstBytes)) || source.find(pgpBegin, 0) !== -1) && findBegin(source, 0) !== -1,
  read: async (source, members) => readArmour(source, members),
}

/** The position of the next line that begins a block, behind blanks where a text indents it. */
function findBegin(source: Source, from: number): number {
  let at = source.find(begin, from)
  while (at !== -1) {
    const before = source.read(Math.max(0, at - 64), at).toString('latin1')
    if (isLineStart(source, at) || /(?:^|[\r\n])[ \t]+$/.test(before)) return at
    at = source.find(begin, at + 1)
  }
  return -1
}

async function readArmour(source: Source, members: Members): Promise<Reading> {
  const doubts = new Set<Doubt>()
  let count = 0
  for (let at = findBegin(source, 0); at !== -1; ) {
    const line = readLine(source, at, source.bytes)
    const label = /^-----BEGIN ([^\r\n]{1,100}?)-----/.exec(line)?.[1]
    if (label === undefined) {
      at = findBegin(source, at + 1)
      continue
    }
    if (++count > maxBlocks) {
      doubts.add('ScanLimitExceeded')
      break
    }
    const next = findBegin(source, at + line.length)
    const ending = source.find(Buffer.from('-----END '), at, next === -1 ? source.bytes : next)
    const end = ending !== -1 ? ending : next === -1 ? source.bytes : next
    const block = { start: skipHeaders(source, at, end), end, label }
    if (label === 'AGE ENCRYPTED FILE') doubts.add('EncryptedContent')
    else if (label === 'PGP SIGNED MESSAGE') await giveSignedText(source, members, block)
    else await giveDecoded(source, members, block)
    at = next
  }
  // The text around the blocks was scanned with the content itself.
  return { accounted: count === 0 || hasBytes(source) ? [] : [{ start: 0, end: source.bytes }], doubts: [...doubts] }
}

function hasBytes(source: Source): boolean {
  for (const piece of source.pieces(0, source.bytes)) if (hasControls(piece)) return true
  return false
}

const maxHeaders = 100
const maxHeaderBytes = 1000

type Block = { start: number; end: number; label: string }

/** The start of the data: behind the first line and the headers, which have the form `Name: value`. */
function skipHeaders(source: Source, at: number, end: number): number {
  let start = at
  let count = 0
  for (const line of listLines(source, at, end)) {
    const text = line.bytes.toString('latin1', 0, maxHeaderBytes).trim()
    const isHeader = count === 0 || /^[\w-]+: /.test(text)
    if (isHeader || text === '') start = line.next
    if (!isHeader || ++count > maxHeaders) break
  }
  return start
}

/** Gives the text between its header and its signature. Lines that begin with a dash are escaped. */
async function giveSignedText(source: Source, members: Members, { start, end }: Block) {
  function* withoutDashes(): Generator<Buffer> {
    for (const line of listLines(source, start, end)) {
      const bytes = source.read(line.start, line.next)
      yield bytes.toString('latin1', 0, 2) === '- ' ? bytes.subarray(2) : bytes
    }
  }
  await members.give({ path: '[signed text]', pieces: withoutDashes() })
}

/** Gives the bytes of a block, unless they are a key, a certificate or a signature. */
async function giveDecoded(source: Source, members: Members, { start, end, label }: Block) {
  if (end - start <= maxKeyBytes * 1.5) {
    const decoded = Buffer.concat([...decodeBase64(source.pieces(start, end))])
    if (decoded.length < minDecodedBytes || isOrdinaryKey(decoded)) return
  }
  await members.give({ path: `[${label}]`, pieces: decodeBase64(source.pieces(start, end)) })
}
