import { constants, inflateRawSync, inflateSync } from 'node:zlib'
import { findPacketData, mayBePackets } from '../../../../domain/content/openpgp-chain.ts'
import {
  findPacketKind,
  isEncryptedTag,
  isKnownTag,
  type Packet,
  packetTags,
  readBodyStart,
  readPacket,
} from '../../../../domain/content/openpgp-packets.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { decompress } from '../inflate.ts'
import type { Members, Reader, Reading } from '../reader.ts'
import { cutSource, type Source } from '../source.ts'

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

/** Whether compressed data holds packets. Deflate has no signature, so other content may look like it. */
function hasPacketsInside(source: Source, packet: Packet): boolean {
  const [method] = readBodyStart(source.read, packet, 1)
  const data = readSample(source, packet)
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

/** The first bytes of compressed data. */
function readSample(source: Source, packet: Packet): Buffer {
  let sample: Buffer = Buffer.alloc(0)
  for (const piece of readBody(source, packet, 1)) {
    sample = Buffer.concat([sample, piece.subarray(0, sampleBytes)])
    if (sample.length >= sampleBytes) break
  }
  return sample.subarray(0, sampleBytes)
}

const sampleBytes = 500
const sampleOptions = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 2 ** 20 }

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
