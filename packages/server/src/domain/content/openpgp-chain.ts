import { headBytes } from './content.ts'
import {
  countBodyBytes,
  isCompressedBody,
  isFirstTag,
  isPlausiblePacket,
  isSealed,
  minSealedBytes,
  type Packet,
  packetTags,
  type Read,
  readBodyStart,
  readPacket,
} from './openpgp-packets.ts'

/** A packet with content, behind any others; `beyond` where the bytes that are at hand end before one. */
export type FoundData = { packet: Packet; kind: 'literal' | 'compressed' | 'encrypted' } | 'beyond'

/** An empty packet takes two bytes. Raw sound may look like any number of them. */
const maxPackets = 300_000
/** A packet that is skipped and fills more than this is taken for chance. */
const maxSkippedBytes = 2 ** 28

/**
 * Finds the first packet whose content gpg extracts: gpg skips packets of every other kind, known or not, and takes
 * literal data with any letter for its format, any name and a length beyond the end. Nothing of that has a signature,
 * so that chance finds such a packet in a few of a hundred files of random bytes.
 *
 * @param available the bytes that `read` gives, fewer than `bytes` where only the head is at hand
 */
export function findPacketData(read: Read, bytes: number, available = bytes): FoundData | undefined {
  let hasKey = false
  let at = 0
  for (let count = 0; count < maxPackets && at < bytes; count++) {
    if (at >= available) return 'beyond'
    const packet = readPacket(read, at, bytes)
    if (packet === undefined) return undefined
    if (packet.tag === packetTags.literal && isLiteral(read, packet)) return { packet, kind: 'literal' }
    if (packet.tag === packetTags.compressed && isCompressedBody(readBodyStart(read, packet, 4))) {
      return { packet, kind: 'compressed' }
    }
    if (hasKey && isSealed(packet.tag)) return { packet, kind: 'encrypted' }
    const isKey = packet.tag === packetTags.sessionKey || packet.tag === packetTags.passwordKey
    hasKey = isKey && isPlausiblePacket(read, packet)
    if (packet.end - at > maxSkippedBytes || packet.end === at) return undefined
    at = packet.end
  }
  return undefined
}

/**
 * Whether content with this head may be OpenPGP packets, as far as the head tells. A wrong yes costs time.
 *
 * @param isWhole whether the content ends with the head
 */
export function mayBePackets(head: Buffer, isWhole = head.length < headBytes): boolean {
  if (((head[0] ?? 0) & 0x80) === 0) return false
  const read: Read = (start, end) => head.subarray(start, end)
  if (isPlausibleFirst(read, head)) return true
  return findPacketData(read, isWhole ? head.length : Number.MAX_SAFE_INTEGER, head.length) !== undefined
}

function isPlausibleFirst(read: Read, head: Buffer): boolean {
  const packet = readPacket(read, 0, Number.MAX_SAFE_INTEGER)
  if (packet === undefined || !isFirstTag(packet.tag)) return false
  if (isSealed(packet.tag)) {
    const fillsContent = packet.end === head.length || head.length >= headBytes
    if (packet.isOpenEnded || countBodyBytes(packet) < minSealedBytes || !fillsContent) return false
  }
  return isPlausiblePacket(read, packet)
}

/** Letter, length of the name, and date. */
const literalHeadBytes = 6
const comparedBytes = 64
const maxPeriod = 4

/** Whether a body has room for its name. A few bytes that repeat are sound or a picture, each part like the whole. */
function isLiteral(read: Read, packet: Packet): boolean {
  const headBytes = literalHeadBytes + (readBodyStart(read, packet, 2)[1] ?? 0)
  const start = readBodyStart(read, packet, headBytes + comparedBytes)
  return start.length > headBytes && !isRepeating(start)
}

function isRepeating(bytes: Buffer): boolean {
  for (let period = 1; period <= maxPeriod; period++) {
    if (bytes.subarray(period).equals(bytes.subarray(0, bytes.length - period))) return true
  }
  return false
}
