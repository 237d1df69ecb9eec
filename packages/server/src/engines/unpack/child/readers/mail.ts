import { canHoldContent } from '../../../../domain/content/container.ts'
import { isMailHead, skipMailStart } from '../../../../domain/content/document-formats.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { findGaps, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'
import {
  type Decoding,
  listBoundaries,
  listDecodings,
  type MailHeader,
  readHeaders,
  toTypeName,
} from './mail-headers.ts'
import { findHeaderStart, findMimeFields, guessBoundary, listMessages, type Span, splitParts } from './mail-parts.ts'
import { countControls, hasControls, listLines } from './text-lines.ts'
import { decodeBase64, decodeQuotedPrintable, listBase64Rules } from './transfer-encodings.ts'

const headBytes = 65_536
const firstHeaderBytes = 16_384
const firstBytes = 64
/** Controls in damaged mail. */
const maxControls = 4
const maxHeaderBytes = 2 ** 20
/** How often the bytes of a mail may be read, on average. */
const maxReadings = 40
const minWorkBytes = 64 * 2 ** 20
const maxDepth = 50
const maxEntities = 20_000
/** A mailbox with fewer messages is also read as one mail. */
const maxMessagesInOne = 20

/** Reads mail, news, mailboxes and web archives, also where their header stands behind other text. */
export const mailReader: Reader = {
  name: 'mail',
  recognizes: (source) => {
    const head = source.read(0, headBytes)
    if (isMailHead(head)) return true
    return countControls(head.subarray(0, firstBytes)) <= maxControls && !findMimeFields(source).next().done
  },
  read: readMail,
}

type Mail = {
  source: Source
  members: Members
  doubts: Set<Doubt>
  headers: Range[]
  /** Bodies that were given. */
  bodies: Range[]
  /** Entities and bodies that were read, as position and way of reading. */
  seen: Set<string>
  hasMime: boolean
  workLeft: number
}

async function readMail(source: Source, members: Members): Promise<Reading> {
  const mail: Mail = {
    source,
    members,
    doubts: new Set(),
    headers: [],
    bodies: [],
    seen: new Set(),
    hasMime: false,
    workLeft: Math.max(minWorkBytes, maxReadings * source.bytes),
  }
  const head = source.read(0, headBytes)
  if (isMailHead(head)) await readMessages(mail, skipMailStart(head))
  await readStrayParts(mail)
  if (!mail.hasMime) return { accounted: [], doubts: [] }
  const read = [...mail.headers, ...mail.bodies]
  return { accounted: [...read, ...listTextGaps(source, read)], doubts: [...mail.doubts] }
}

async function readMessages(mail: Mail, start: number) {
  const { source } = mail
  if (source.read(start, start + 5).toString('latin1') !== 'From ') {
    await readEntity(mail, { start, end: source.bytes }, { depth: 0, isDigest: false })
    return
  }
  const { messages, isCut } = listMessages(source, start)
  if (isCut) mail.doubts.add('ScanLimitExceeded')
  const first = messages[0]
  for (const span of messages) await readEntity(mail, span, { depth: 0, isDigest: false })
  if (first !== undefined && messages.length > 1 && messages.length <= maxMessagesInOne) {
    await readEntity(mail, { start: first.start, end: source.bytes }, { depth: 0, isDigest: false })
  }
}

/** Reads parts whose header stands outside of the structure: behind other text, in returned mail, after the end. */
async function readStrayParts(mail: Mail) {
  const { source } = mail
  const blocks = new Set<number>()
  const gaps = findGaps(mail.headers, source.bytes)
  let gap = 0
  for (const at of findMimeFields(source)) {
    while ((gaps[gap]?.end ?? source.bytes) <= at) gap++
    if ((gaps[gap]?.start ?? source.bytes) > at) continue
    blocks.add(findHeaderStart(source, at, 0))
    if (blocks.size >= maxEntities) {
      mail.doubts.add('ScanLimitExceeded')
      break
    }
  }
  const starts = [...blocks].toSorted((a, b) => a - b)
  for (const [i, start] of starts.entries()) {
    const next = starts[i + 1] ?? source.bytes
    const dashes = source.find(lineOfDashes, start, next)
    await readEntity(mail, { start, end: dashes === -1 ? next : dashes }, { depth: 0, isDigest: false })
    const isMultipart = /content-type[ \t]*:[ \t]*multipart/i.test(source.read(start, start + 4096).toString('latin1'))
    if (isMultipart) await readEntity(mail, { start, end: source.bytes }, { depth: 0, isDigest: false })
  }
}

const lineOfDashes = Buffer.from('\n--')

type Place = { depth: number; isDigest: boolean }

/** Reads a mail or a part of it, which begins with its header. */
async function readEntity(mail: Mail, { start, end }: Span, place: Place) {
  const { seen } = mail
  const key = `${start} ${end}`
  if (start >= end || seen.has(key)) return
  seen.add(key)
  if (seen.size > maxEntities || place.depth > maxDepth) {
    mail.doubts.add('ScanLimitExceeded')
    return
  }
  for (const header of readWholeHeaders(mail, start, end)) {
    if (header.types.length + header.encodings.length > 0) mail.hasMime = true
    mail.headers.push({ start, end: start + header.bodyAt })
    await readBody(mail, header, { start: start + header.bodyAt, end }, place)
  }
}

/** Reads more of the content until the header ends in it. */
function readWholeHeaders({ source, doubts }: Mail, start: number, end: number): MailHeader[] {
  for (let bytes = firstHeaderBytes; ; bytes *= 8) {
    const headers = readHeaders(source.read(start, Math.min(end, start + bytes)).toString('latin1'))
    const isWhole = start + bytes >= end || headers.every(({ bodyAt }) => bodyAt < bytes)
    if (!isWhole && bytes >= maxHeaderBytes) doubts.add('ScanLimitExceeded')
    if (isWhole || bytes >= maxHeaderBytes) return headers
  }
}

/** Counts bytes that are searched or decoded. Parts that overlap could otherwise multiply the work. */
function hasWorkLeft(mail: Mail, bytes: number): boolean {
  mail.workLeft -= bytes
  if (mail.workLeft < 0) mail.doubts.add('ScanLimitExceeded')
  return mail.workLeft >= 0
}

async function readBody(mail: Mail, header: MailHeader, body: Span, place: Place) {
  const decodings = new Set(header.encodings.flatMap(listDecodings))
  if (decodings.size === 0) decodings.add('none')
  // Programs find the encoding in a damaged field, too: the body tells it without one.
  if (decodings.has('none')) {
    if (hasEscapes(mail.source, body)) decodings.add('quoted-printable')
    if (hasBase64(mail.source, body)) decodings.add('base64')
  }
  // Programs choose the first or the last of several headers, so each of them counts.
  const readings = header.encodings.map((encoding) => listDecodings(encoding).join())
  if (new Set(readings).size > 1) mail.doubts.add('UnsupportedContainer')
  const types = header.types.length === 0 ? [place.isDigest ? 'message/rfc822' : 'text/plain'] : header.types
  const isMultipart = types.map((type) => /multipart/i.test(type))
  if (new Set(isMultipart).size > 1) mail.doubts.add('UnsupportedContainer')
  for (const [i, type] of types.entries()) {
    if (isMultipart[i]) await readMultipart(mail, type, body, place)
    for (const decoding of decodings) await giveBody(mail, { header, type, decoding, body })
  }
}

async function readMultipart(mail: Mail, type: string, body: Span, place: Place) {
  const { source } = mail
  const named = listBoundaries(type)
  const candidates = named.some((boundary) => boundary !== '') ? named : [...named, ...guessBoundary(source, body)]
  for (const boundary of candidates) {
    if (!hasWorkLeft(mail, body.end - body.start)) return
    const { parts, isCut } = splitParts(source, body, boundary)
    if (isCut) mail.doubts.add('ScanLimitExceeded')
    const isDigest = toTypeName(type) === 'multipart/digest'
    for (const part of parts.flat()) await readEntity(mail, part, { depth: place.depth + 1, isDigest })
  }
}

const quotedByte = /=[0-9a-f]{2}/gi
/** Fewer escapes are text, such as the address of a page. */
const minEscapes = 8

/** Whether a body looks like quoted-printable. */
const hasEscapes = (source: Source, { start, end }: Span): boolean =>
  (source
    .read(start, Math.min(end, start + headBytes))
    .toString('latin1')
    .match(quotedByte)?.length ?? 0) >= minEscapes

/** Base64 has no blanks but line ends; programs pass over other characters in it. */
const minBase64Share = 0.8
const minBase64Chars = 64

/** Whether a body looks like base64. */
function hasBase64(source: Source, { start, end }: Span): boolean {
  const text = source
    .read(start, Math.min(end, start + firstHeaderBytes))
    .toString('latin1')
    .replace(/[\r\n]+/g, '')
  const count = text.match(/[A-Za-z0-9+/=]/g)?.length ?? 0
  return count >= minBase64Chars && count >= minBase64Share * text.length && !/ [^ ]+ [^ ]+ /.test(text)
}

type Leaf = { header: MailHeader; type: string; decoding: Decoding; body: Span }

/** Gives the body of a part, decoded. Text that stands in the mail as it is was scanned with the mail. */
async function giveBody(mail: Mail, { header, type, decoding, body }: Leaf) {
  const { source, seen } = mail
  const name = toTypeName(type)
  const isMultipart = /multipart/i.test(type)
  const key = `${body.start} ${body.end} ${decoding} ${isMultipart}`
  // The reader of encoded text finds uuencode and yEnc wherever they stand.
  if (seen.has(key) || decoding === 'encoded-text' || body.start >= body.end) return
  seen.add(key)
  if (decoding === 'none') {
    if (isMultipart || isPlainText(mail, { header, name, body })) return
  }
  if (/^message\/partial/i.test(name)) mail.doubts.add('UnsupportedContainer')
  const path = header.fileName ?? `[part at ${body.start}]`
  mail.bodies.push(body)
  // A decoded body of several parts needs the header that tells how to divide it.
  const start = isMultipart ? Buffer.from(`Content-Type: ${type}\n\n`, 'latin1') : Buffer.alloc(0)
  for (const pieces of listReadings(source, body, decoding)) {
    if (!hasWorkLeft(mail, body.end - body.start)) return
    await mail.members.give({ path, pieces: start.length === 0 ? pieces : prepend(start, pieces) })
  }
}

function* prepend(start: Buffer, pieces: Iterable<Buffer>): Generator<Buffer> {
  yield start
  yield* pieces
}

function listReadings(source: Source, { start, end }: Span, decoding: Decoding): Iterable<Buffer>[] {
  if (decoding === 'base64') {
    const rules = listBase64Rules(source.pieces(start, end))
    const readings = rules.map((rule) => decodeBase64(source.pieces(start, end), rule))
    const starts = listBase64Starts(source, { start, end })
    const lines = rules.some(({ onJunk }) => onJunk === 'stop')
      ? [decodeBase64(listBase64Lines(source, { start, end }))]
      : []
    return [...readings, ...lines, ...starts.map((at) => decodeBase64(source.pieces(at, end)))]
  }
  if (decoding === 'quoted-printable') {
    const hasReturn = /=[ \t]*\r(?!\n)/.test(source.read(start, Math.min(end, start + headBytes)).toString('latin1'))
    return [false, ...(hasReturn ? [true] : [])].map((skipsToLineFeed) =>
      decodeQuotedPrintable(source.pieces(start, end), { skipsToLineFeed }),
    )
  }
  return [source.pieces(start, end)]
}

const fullLine = /^[A-Za-z0-9+/]{32,}={0,2}[ \t]*$/
const maxStarts = 8

const wholeLine = /^[A-Za-z0-9+/]+={0,2}[ \t]*$/

/** The lines that hold nothing but base64: some programs leave out all others, instead of single characters. */
function* listBase64Lines(source: Source, { start, end }: Span): Generator<Buffer> {
  for (const { bytes } of listLines(source, start, end)) if (wholeLine.test(bytes.toString('latin1'))) yield bytes
}

/** The places in a body at which full lines of base64 follow other lines: tolerant programs begin there. */
function listBase64Starts(source: Source, { start, end }: Span): number[] {
  const starts: number[] = []
  let wasFull = true
  for (const line of listLines(source, start, Math.min(end, start + headBytes))) {
    const isFull = fullLine.test(line.bytes.toString('latin1'))
    if (isFull && !wasFull && starts.length < maxStarts) starts.push(line.start)
    wasFull = isFull
  }
  return starts
}

/** Whether a body without encoding is text of the mail: no attachment, and nothing that a program would open. */
function isPlainText({ source }: Mail, { header, name, body }: { header: MailHeader; name: string; body: Span }) {
  if (header.fileName !== undefined || !/^text\/(?:plain|html)$/.test(name)) return false
  const head = source.read(body.start, Math.min(body.end, body.start + headBytes))
  return !hasControls(head) && !canHoldContent(head) && body.end - body.start > maxShortText
}

/** Short texts are given, because a signature may describe the whole of a small file. */
const maxShortText = 256

/** Text between the parts belongs to the mail; other bytes there are content of their own. */
function listTextGaps(source: Source, read: Range[]): Range[] {
  return findGaps(read, source.bytes).filter((gap) => {
    for (const piece of source.pieces(gap.start, gap.end)) if (hasControls(piece)) return false
    return true
  })
}
