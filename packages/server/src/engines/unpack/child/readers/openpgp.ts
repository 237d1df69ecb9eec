import { constants, inflateRawSync, inflateSync } from 'node:zlib'
import {
  findPacketKind,
  isEncryptedTag,
  mayBePackets,
  type Packet,
  packetTags,
  readBodyStart,
  readPacket,
} from '../../../../domain/content/openpgp-packets.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import { decompress } from '../inflate.ts'
import type { Members, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'

const maxPackets = 100_000

/** Reads OpenPGP packets: gives literal and compressed data, and tells of encrypted data. Keys and signatures pass. */
export const openPgpReader: Reader = {
  name: 'OpenPGP',
  recognizes: (source) => findPacketKind(source.read, source.bytes) !== undefined && hasPacketsInside(source),
  read: async (source, members) => readPackets(source, members),
}

/** Whether compressed data at the start holds packets. Deflate has no signature, so other content may look like it. */
function hasPacketsInside(source: Source): boolean {
  const packet = readPacket(source.read, 0, source.bytes)
  if (packet?.tag !== packetTags.compressed) return true
  const [method] = readBodyStart(source.read, packet, 1)
  if (method !== 1 && method !== 2) return true
  try {
    const data = readSample(source, packet)
    return mayBePackets((method === 1 ? inflateRawSync : inflateSync)(data, sampleOptions))
  } catch {
    return false
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
    else if (packet.isCut) doubts.add('UnsupportedContainer')
    if (packet.tag === packetTags.literal) await giveLiteral(source, members, packet)
    if (packet.tag === packetTags.compressed && !(await giveCompressed(source, members, packet))) {
      doubts.add('UnsupportedContainer')
    }
    at = packet.end
  }
  return { accounted: at === 0 ? [] : [{ start: 0, end: at }], doubts: [...doubts] }
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
