import { constants, inflateRawSync, inflateSync } from 'node:zlib'
import { isOrdinaryKey } from '../../../../domain/content/document-formats.ts'
import {
  findPacketData,
  findPacketKind,
  isEncryptedTag,
  isKnownTag,
  mayBePackets,
  type Packet,
  packetTags,
  readBodyStart,
  readPacket,
} from '../../../../domain/content/openpgp.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { decompress } from '../inflate.ts'
import { cutSource, type Members, type Reader, type Reading, readFirst, type Source } from '../reader.ts'
import { beginsAsText, findTextEnd, isLineStart, listLines, readLine } from './text-lines.ts'
import { decodeBase64 } from './transfer-encodings.ts'

const maxPackets = 100_000
/** Packets with content that are given where nothing but their order tells that they are packets. */
const maxUncertain = 16

/** Reads OpenPGP packets: gives literal and compressed data, and tells of encrypted data. Keys and signatures pass. */
export const openPgpReader: Reader = {
  name: 'OpenPGP',
  recognizes: (source) => isCertain(source) || findUncertain(source) !== undefined,
  read: async (source, members) =>
    isCertain(source) ? readPackets(source, members) : readUncertainPackets(source, members),
}

function isCertain(source: Source): boolean {
  if (findPacketKind(source.read, source.bytes) === undefined) return false
  const packet = readPacket(source.read, 0, source.bytes)
  return packet?.tag !== packetTags.compressed || hasPacketsInside(source, packet)
}

/** The first packet with content, behind any others and of any form that gpg accepts. */
function findUncertain(source: Source) {
  const found = findPacketData(source.read, source.bytes)
  if (found === undefined || found === 'beyond') return undefined
  return found.kind !== 'compressed' || hasPacketsInside(source, found.packet) ? found : undefined
}

const sampleBytes = 500
const sampleOptions = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 2 ** 20 }

/** Whether compressed data holds packets. Deflate has no signature, so other content may look like it. */
function hasPacketsInside(source: Source, packet: Packet): boolean {
  const [method] = readBodyStart(source.read, packet, 1)
  const data = readFirst(readBody(source, packet, 1), sampleBytes)
  // Bzip2 has a signature, which was looked at.
  if (method === 3) return true
  try {
    const inside =
      method === 0 ? data : method === 1 ? inflateRawSync(data, sampleOptions) : inflateSync(data, sampleOptions)
    return mayBePackets(inside, data.length < sampleBytes)
  } catch (error) {
    // Data that grows that much is no chance.
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
  }
}

async function readPackets(source: Source, members: Members): Promise<Reading> {
  const doubts = new Set<Doubt>()
  let at = 0
  for (let count = 0; at < source.bytes; count++) {
    const packet = readPacket(source.read, at, source.bytes)
    if (packet === undefined) break
    if (count > maxPackets) {
      doubts.add('ScanLimitExceeded')
      break
    }
    if (isEncryptedTag(packet.tag)) doubts.add('EncryptedContent')
    else if (packet.isCut && isKnownTag(packet.tag)) doubts.add('UnsupportedContainer')
    if (packet.tag === packetTags.literal) await giveLiteral(source, members, packet)
    if (packet.tag === packetTags.compressed && !(await giveCompressed(source, members, packet))) {
      doubts.add('UnsupportedContainer')
    }
    at = packet.end
  }
  return { accounted: at === 0 ? [] : [{ start: 0, end: at }], doubts: [...doubts] }
}

/**
 * Gives the content of packets that may be none: the content is read in all other ways too, and only what chance does
 * not make is a doubt.
 */
async function readUncertainPackets(source: Source, members: Members): Promise<Reading> {
  const doubts = new Set<Doubt>()
  let start = 0
  for (let count = 0; count < maxUncertain; count++) {
    const rest = cutSource(source, start)
    const found = findUncertain(rest)
    if (found === undefined) break
    const { packet, kind } = found
    if (kind === 'encrypted') doubts.add('EncryptedContent')
    else if (kind === 'literal') await giveLiteral(rest, members, packet)
    else if (!(await giveCompressed(rest, members, packet)) || packet.isCut) doubts.add('UnsupportedContainer')
    start += packet.end
  }
  return { accounted: [], doubts: [...doubts] }
}

/** The bytes of a body behind its first `skip` bytes. */
function* readBody(source: Source, { parts }: Packet, skip: number): Generator<Buffer> {
  let left = skip
  for (const { start, end } of parts) {
    const skipped = Math.min(left, end - start)
    left -= skipped
    yield* source.pieces(start + skipped, end)
  }
}

/** Literal data has a format, a name and a date before its content. */
async function giveLiteral(source: Source, members: Members, packet: Packet) {
  const nameBytes = readBodyStart(source.read, packet, 2)[1] ?? 0
  const name = readBodyStart(source.read, packet, 2 + nameBytes).toString('utf8', 2)
  await members.give({ path: name === '' ? '[literal data]' : name, pieces: readBody(source, packet, 6 + nameBytes) })
}

/** Gives the packets in compressed data, as content of their own. Returns whether all of it could be read. */
async function giveCompressed(source: Source, members: Members, packet: Packet): Promise<boolean> {
  const [method = -1] = readBodyStart(source.read, packet, 1)
  const path = '[compressed data]'
  const body = readBody(source, packet, 1)
  // Data without compression consists of packets, and bzip2 is a format of its own.
  if (method === 0 || method === 3) {
    await members.give({ path, pieces: body })
    return true
  }
  if (method !== 1 && method !== 2) return false
  try {
    await members.give({ path, pieces: decompress(method === 1 ? 'deflate' : 'zlib', body).pieces })
    return true
  } catch {
    return false
  }
}

const armourBegin = Buffer.from('-----BEGIN ')
const pgpBegin = Buffer.from('-----BEGIN PGP ')
const maxBlocks = 10_000
/** Keys and certificates are smaller; larger blocks are given without a look at their content. */
const maxKeyBytes = 65_536
const minDecodedBytes = 8

/** Reads ASCII armour of OpenPGP, PEM and age, wherever it stands in text. */
export const armourReader: Reader = {
  name: 'ASCII armour',
  // GnuPG skips any bytes in front of its armour.
  recognizes: (source) => (beginsAsText(source) || source.find(pgpBegin, 0) !== -1) && findBegin(source, 0) !== -1,
  read: readArmour,
}

/** The position of the next line that begins a block, behind blanks where a text indents it. */
function findBegin(source: Source, from: number): number {
  let at = source.find(armourBegin, from)
  while (at !== -1) {
    const before = source.read(Math.max(0, at - 64), at).toString('latin1')
    if (isLineStart(source, at) || /(?:^|[\r\n])[ \t]+$/.test(before)) return at
    at = source.find(armourBegin, at + 1)
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
  const isText = count > 0 && findTextEnd(source) === source.bytes
  return { accounted: isText ? [{ start: 0, end: source.bytes }] : [], doubts: [...doubts] }
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
