import { findContainerFormat } from '../../../../domain/content/container-formats.ts'
import { headBytes } from '../../../../domain/content/content.ts'
import { hasPdfObject, pdfMark } from '../../../../domain/content/document-formats.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { findGaps, isMixed, type Members, type Range, type Reader, type Reading, type Source } from '../reader.ts'
import { listAttachments, listPackedObjects } from './pdf-attachments.ts'
import { decodeStream, type Filter, isPictureFilter, listFilterChains, openStreamBytes } from './pdf-decode.ts'
import { type Decryption, openDecryption } from './pdf-encryption.ts'
import type { Bytes, Damage } from './pdf-filters.ts'
import { findStreams, listTrailers, type Objects, openObjects, type PdfStream } from './pdf-objects.ts'
import { type Dictionary, getValue, isDictionary } from './pdf-values.ts'

/** Up to here programs look for the header of a PDF. */
const usualHeadBytes = 1024

/**
 * Reads PDF: gives the streams, attachments among them, decoded by their filters. A PDF that opens without a password
 * is decrypted.
 */
export const pdfReader: Reader = {
  name: 'PDF',
  recognizes(source) {
    const head = source.read(0, headBytes)
    const at = head.indexOf(pdfMark)
    // Archives may hold a PDF as it is; their own readers give it.
    if (at !== -1) return at <= usualHeadBytes || findContainerFormat(head) === undefined
    return hasPdfObject(head) && source.find(pdfMark, 0) === -1 && hasPdfEnd(source)
  },
  read: readPdf,
}

type Job = {
  source: Source
  members: Members
  objects: Objects
  decryption: Decryption | undefined
  /** The numbers of the objects that are attachments, once they are needed. */
  attachments?: Set<number>
  /** ClamAV takes content for a PDF that begins with the header. */
  beginsWithHeader: boolean
}

/** Whether content without the header of a PDF ends as one. */
function hasPdfEnd(source: Source): boolean {
  const tail = source.read(source.bytes - tailBytes, source.bytes)
  return tail.includes('startxref') || tail.includes('/Root')
}

async function readPdf(source: Source, members: Members): Promise<Reading> {
  const foundAt = source.find(pdfMark, 0)
  const headerAt = Math.max(0, foundAt)
  const objects = openObjects(source, () => listPackedObjects(source, decryption))
  let decryption: Decryption | undefined
  const encryption = await findEncryption(source, objects)
  if (encryption.isEncrypted) {
    decryption = encryption.decryption
    if (decryption === undefined) return { accounted: [{ start: 0, end: source.bytes }], doubts: ['EncryptedContent'] }
  }
  const job: Job = { source, members, objects, decryption, beginsWithHeader: foundAt === 0 }
  const doubts = new Set<Doubt>()
  const streams: Range[] = []
  for (const stream of findStreams(source, headerAt)) {
    streams.push({ start: stream.start, end: stream.end })
    for (const doubt of await giveStream(job, stream)) doubts.add(doubt)
  }
  if (streams.length === 0 && source.find(objectMark, headerAt) === -1) return { accounted: [], doubts: [] }
  const body = findBody(source, headerAt)
  return { accounted: [body], searched: listMixedGaps(source, streams, body), doubts: [...doubts] }
}

/** Behind so many, everything is searched at once. */
const maxGaps = 1000
const minGapBytes = 64

/** The ranges between streams that have bytes which no text has: strings, or content that is no part of the PDF. */
function listMixedGaps(source: Source, streams: Range[], body: Range): Range[] {
  const outside = [{ start: 0, end: body.start }, ...streams]
  const gaps = findGaps(outside, body.end).filter((gap) => gap.end - gap.start >= minGapBytes && isMixed(source, gap))
  const next = gaps[maxGaps]
  return next === undefined ? gaps : [...gaps.slice(0, maxGaps), { start: next.start, end: body.end }]
}

const objectMark = Buffer.from(' obj')
const endMark = Buffer.from('%%EOF')
const tailBytes = 2 ** 20

/** The range from the header up to the last end mark and the line end behind it. */
function findBody(source: Source, headerAt: number): Range {
  const from = Math.max(headerAt, source.bytes - tailBytes)
  const tail = source.read(from, source.bytes)
  const mark = tail.lastIndexOf(endMark)
  if (mark === -1) return { start: headerAt, end: source.bytes }
  const blanks = /^[\0\s]*/.exec(tail.toString('latin1', mark + endMark.length))?.[0].length ?? 0
  return { start: headerAt, end: from + mark + endMark.length + blanks }
}

type Encryption = { isEncrypted: boolean; decryption?: Decryption | undefined }

/** Looks for the encryption that a trailer or a stream in place of one names. */
async function findEncryption(source: Source, objects: Objects): Promise<Encryption> {
  if (encryptMarks.every((mark) => source.find(mark, 0) === -1)) return { isEncrypted: false }
  const trailers = listTrailers(source)
  for (const { dictionary } of findStreams(source, 0)) {
    if (dictionary !== undefined && getValue(dictionary, 'Type') === 'XRef') trailers.push(dictionary)
  }
  const named = trailers.filter((trailer) => getValue(trailer, 'Encrypt') !== null)
  if (named.length === 0) return { isEncrypted: false }
  for (const trailer of named.slice(-maxTrailers)) {
    for (const dictionary of await objects.resolve(getValue(trailer, 'Encrypt'))) {
      if (!isDictionary(dictionary)) continue
      const decryption =
        openDecryption(dictionary, getFileId([trailer])) ?? openDecryption(dictionary, getFileId(trailers))
      if (decryption !== undefined) return { isEncrypted: true, decryption }
    }
  }
  return { isEncrypted: true }
}

/** Parts of the name `/Encrypt` as it is usually written, or with escaped letters. */
const encryptMarks = ['/Encrypt', '#45', '#6e', '#6E', '#63', '#72', '#79', '#70', '#74'].map((text) =>
  Buffer.from(text),
)
const maxTrailers = 8

function getFileId(trailers: Dictionary[]): Buffer {
  for (const trailer of trailers) {
    const id = getValue(trailer, 'ID')
    const [first] = Array.isArray(id) ? id : []
    if (Buffer.isBuffer(first)) return first
  }
  return Buffer.alloc(0)
}

/** Gives a stream in each way in which it may be decoded. */
async function giveStream(job: Job, stream: PdfStream): Promise<Doubt[]> {
  const { dictionary } = stream
  if (dictionary === undefined) return giveUnknown(job, stream)
  if (stream.isDamaged) await giveUnknown(job, stream)
  const type = getValue(dictionary, 'Type')
  if (type === 'XRef') return []
  const chains = await listFilterChains(dictionary, job.objects)
  const isEmbedded = (dictionary.get('Type') ?? []).includes('EmbeddedFile')
  const doubts: Doubt[] = []
  if (chains.some((chain) => chain.some(isPictureFilter)) && (isEmbedded || (await isAttachment(job, stream)))) {
    doubts.push('UnsupportedContainer')
  }
  // ClamAV does not scan pictures, and an attachment may name itself one.
  const isUnscanned = stream.text.includes('Image') && (isEmbedded || (await isAttachment(job, stream)))
  for (const stop of await listEnds(job, stream, dictionary)) {
    for (const chain of chains) {
      if (!isEmbedded && chain.length === 1 && isPictureFilter(chain[0])) continue
      const isSeen = chains.length === 1 && !isUnscanned && isPlain(job, stream, chain)
      doubts.push(
        ...(await giveDecoded(job, { ...stream, stop }, chain, { isSeen, isEmbedded, isOnly: chains.length === 1 })),
      )
      // The encryption may be that of a PDF within this one, whose own streams are clear.
      if (job.decryption !== undefined) {
        await giveDecoded({ ...job, decryption: undefined }, { ...stream, stop }, chain, { isSeen, isEmbedded })
      }
    }
  }
  return doubts
}

/** Whether a stream is an attachment: some programs decode one with the filters of pictures to the bytes of a file. */
async function isAttachment(job: Job, { object }: PdfStream): Promise<boolean> {
  job.attachments ??= await listAttachments(job.source, job.objects)
  return object === 0 ? job.attachments.size > 0 : job.attachments.has(object)
}

/** A stream without a readable dictionary is given packed, and unpacked if it can be. */
async function giveUnknown(job: Job, stream: PdfStream): Promise<Doubt[]> {
  const range = { ...stream, stop: stream.end }
  const options = { isSeen: false, isEmbedded: false }
  await giveDecoded(job, range, [], { ...options, isSeen: true })
  return giveDecoded(job, range, [{ name: 'FlateDecode', parameters: new Map() }], options)
}

const lineEnds = /(?:\r\n|\n|\r)$/

/**
 * The positions at which a stream may end: where its length says, if the keyword follows there, and at the first
 * keyword.
 */
async function listEnds({ source, objects }: Job, stream: PdfStream, dictionary: Dictionary): Promise<number[]> {
  const blanks = lineEnds.exec(source.read(Math.max(stream.start, stream.end - 2), stream.end).toString('latin1'))
  const trimmed = stream.end - (blanks?.[0].length ?? 0)
  const ends: number[] = []
  for (const value of dictionary.get('Length') ?? []) {
    for (const length of (await objects.resolve(value)).slice(0, 4)) {
      if (typeof length !== 'number' || !(length >= 0)) continue
      const end = stream.start + Math.trunc(length)
      const isNear = end >= trimmed && end <= stream.end
      if (isNear) return [end]
      const follows = source.read(end, end + 16).toString('latin1')
      if (end <= source.bytes && /^[\0\s]{0,4}endstream/.test(follows)) ends.push(end)
    }
  }
  return [...new Set([trimmed, ...ends])].slice(0, 4)
}

/** A dictionary without strings, comments and inner dictionaries before its filter: in others ClamAV may miss a key. */
const plainText = /^<<[^<>()%#]*\/Filter[^<>()%#]*(?:>>|\/[^<>()%#]*<<)/

/** Whether ClamAV decodes the stream to the same bytes. In digits it passes over other blanks than programs do. */
function isPlain(
  { source, beginsWithHeader, decryption }: Job,
  { dictionary, text, hasPlainHead, start, end }: PdfStream,
  chain: Filter[],
): boolean {
  if (!beginsWithHeader || decryption !== undefined || dictionary === undefined || !hasPlainHead) return false
  // ClamAV ends an object at the first keyword, wherever it stands.
  if (text.includes('obj') || source.find(objectMark, start, end) !== -1) return false
  if (chain.length === 0) return !/Filter|#/.test(text)
  const hasPlainText = plainText.test(text) && !/\/(?:DecodeParms|DecodeParams|DP|F|Crypt)\b/.test(text)
  const isDirect = /\/Filter\s*(?:\/|\[\s*\/[^\]]*\])/.test(text) && !/\/Filter\s*\[[^\]]*\bR\b/.test(text)
  return hasPlainText && isDirect && chain.length === 1 && chain[0]?.name === 'FlateDecode'
}

type Options = {
  isSeen: boolean
  isEmbedded: boolean
  /** The stream has one list of filters. Of several, those that are not meant find odd bytes. */
  isOnly?: boolean
}

async function giveDecoded(
  { source, members, decryption }: Job,
  stream: PdfStream & { stop: number },
  chain: Filter[],
  { isSeen, isEmbedded, isOnly = false }: Options,
): Promise<Doubt[]> {
  const open = openStreamBytes(source, stream, decryption, chain)
  if (open === undefined) return ['ScanLimitExceeded']
  const damage: Damage = { isDamaged: false }
  const counted = countBytes(decodeStream(open, chain, damage))
  const path = `object ${stream.object}`
  await members.give({ path, pieces: counted.pieces, isSeen })
  const isOdd = isOnly && damage.hasOddText === true
  const isLost = isEmbedded && (isOdd || isIncomplete(damage, counted.getBytes())) && stream.stop > stream.start
  return isLost ? ['UnsupportedContainer'] : []
}

const isIncomplete = ({ isDamaged, isBroken }: Damage, bytes: number) => isBroken === true || (isDamaged && bytes === 0)

function countBytes(input: Bytes) {
  let bytes = 0
  async function* read() {
    for await (const piece of input) {
      bytes += piece.length
      yield piece
    }
  }
  return { pieces: read(), getBytes: () => bytes }
}
