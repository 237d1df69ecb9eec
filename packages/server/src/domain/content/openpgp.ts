import { headBytes } from './content.ts'

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
  const prefixBytes = literalHeadBytes + (readBodyStart(read, packet, 2)[1] ?? 0)
  const start = readBodyStart(read, packet, prefixBytes + comparedBytes)
  return start.length > prefixBytes && !isRepeating(start)
}

function isRepeating(bytes: Buffer): boolean {
  for (let period = 1; period <= maxPeriod; period++) {
    if (bytes.subarray(period).equals(bytes.subarray(0, bytes.length - period))) return true
  }
  return false
}

export type PacketKind = 'keys' | 'message' | 'encrypted'

/**
 * Tells what OpenPGP content is by its first packets; undefined for other content. The format has no signature, so one
 * packet is enough only when it fills the content or has a rare form, and two must follow each other otherwise.
 */
export function findPacketKind(read: Read, bytes: number): PacketKind | undefined {
  let at = 0
  let kind: PacketKind | undefined
  let firstTag = 0
  for (let count = 0; count < 4 && at < bytes; count++) {
    const packet = readPacket(read, at, bytes)
    if (packet === undefined || !knownTags.has(packet.tag)) return hasEnough(kind, count, firstTag) ? kind : undefined
    if (count === 0) firstTag = packet.tag
    const body = readBodyStart(read, packet, bodyStartBytes)
    const length = countBodyBytes(packet)
    if (!isPlausibleBody(packet.tag, body, length)) return hasEnough(kind, count, firstTag) ? kind : undefined
    // Programs give the data of the first packet, whatever follows it, and as much of it as there is.
    if (count === 0 && packet.tag === packetTags.literal && isNamedLiteral(read, packet)) return 'message'
    if (count === 0 && packet.tag === packetTags.compressed) return 'message'
    if (packet.isCut) return count > 0 ? (isEncryptedTag(packet.tag) ? 'encrypted' : kind) : undefined
    if (isEncryptedTag(packet.tag)) kind = 'encrypted'
    else kind ??= keyTags.has(packet.tag) || packet.tag === packetTags.signature ? 'keys' : 'message'
    if (packet.tag === 11 || packet.tag === 8) kind = 'message'
    if (count === 0 && isSealed(packet.tag)) {
      return packet.end === bytes && !packet.isOpenEnded && length >= minSealedBytes ? 'encrypted' : undefined
    }
    if (count === 0 && !isFirstTag(packet.tag)) return undefined
    at = packet.end
  }
  return kind
}

/** Whether the name in literal data is text, or none. By chance it hardly ever is. */
function isNamedLiteral(read: Read, packet: Packet): boolean {
  const nameBytes = readBodyStart(read, packet, 2)[1] ?? 0
  return readBodyStart(read, packet, 2 + nameBytes)
    .subarray(2)
    .every((byte) => byte >= 0x20 && byte !== 0x7f)
}

/** Whether the packets before one that cannot be read tell enough. The one of a password has a form of its own. */
const hasEnough = (kind: PacketKind | undefined, count: number, firstTag: number) =>
  count > 1 || (count === 1 && kind === 'encrypted' && firstTag === packetTags.passwordKey)

/** Reads bytes of content, fewer where it ends. */
export type Read = (start: number, end: number) => Buffer

type PacketPart = { start: number; end: number }

export type Packet = {
  tag: number
  /** The body, which writers of streams divide into several parts. */
  parts: PacketPart[]
  /** The position behind the packet. */
  end: number
  /** The body ends with the content, because the packet states no length. */
  isOpenEnded: boolean
  /** The content ends before the packet does. */
  isCut: boolean
}

export const packetTags = {
  sessionKey: 1,
  signature: 2,
  passwordKey: 3,
  onePassSignature: 4,
  compressed: 8,
  encrypted: 9,
  marker: 10,
  literal: 11,
  sealed: 18,
  sealedWithAead: 20,
} as const

/** Programs skip packets of other kinds. */
const knownTags = new Set([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 21])
/** Keys, user names, attributes, trust and padding. */
const keyTags = new Set([5, 6, 7, 12, 13, 14, 17, 21])
/** Only these may have a body whose length is not known at its start. */
const streamTags = new Set([8, 9, 11, 18, 20])
const encryptedTags = new Set([1, 3, 9, 18, 20])
const maxParts = 1_000_000

export const isEncryptedTag = (tag: number) => encryptedTags.has(tag)
export const isKnownTag = (tag: number) => knownTags.has(tag)

/** The packet at a position (RFC 9580), of any kind, in the old or new format; undefined when there is none. */
export function readPacket(read: Read, at: number, bytes: number): Packet | undefined {
  const head = read(at, at + 6)
  const first = head[0]
  if (first === undefined || (first & 0x80) === 0 || head.length < 2) return undefined
  const tag = (first & 0x40) === 0 ? (first >> 2) & 0x0f : first & 0x3f
  const packet = (first & 0x40) === 0 ? readOldLength(head, at, bytes) : readNewLength(read, at + 1, bytes, tag)
  return packet === undefined ? undefined : { ...packet, tag }
}

type Length = Omit<Packet, 'tag'>

const toLength = (start: number, length: number, bytes: number): Length => ({
  parts: [{ start, end: Math.min(bytes, start + length) }],
  end: Math.min(bytes, start + length),
  isOpenEnded: false,
  isCut: start + length > bytes,
})

function readOldLength(head: Buffer, at: number, bytes: number): Length | undefined {
  const type = (head[0] as number) & 3
  if (type === 3) {
    if (!streamTags.has(((head[0] as number) >> 2) & 0x0f)) return undefined
    return { parts: [{ start: at + 1, end: bytes }], end: bytes, isOpenEnded: true, isCut: false }
  }
  const lengthBytes = 1 << type
  if (head.length < 1 + lengthBytes) return undefined
  return toLength(at + 1 + lengthBytes, head.readUIntBE(1, lengthBytes), bytes)
}

function readNewLength(read: Read, start: number, bytes: number, tag: number): Length | undefined {
  const parts: PacketPart[] = []
  for (let at = start; parts.length < maxParts; ) {
    const head = read(at, at + 5)
    const first = head[0]
    if (first === undefined) return parts.length === 0 ? undefined : { parts, end: at, isOpenEnded: false, isCut: true }
    if (first >= 224 && first < 255) {
      if (!streamTags.has(tag)) return undefined
      const end = at + 1 + 2 ** (first & 0x1f)
      parts.push({ start: at + 1, end: Math.min(bytes, end) })
      if (end >= bytes) return { parts, end: bytes, isOpenEnded: false, isCut: true }
      at = end
      continue
    }
    const isLong = first === 255
    const lengthBytes = isLong ? 5 : first >= 192 ? 2 : 1
    if (head.length < lengthBytes) return undefined
    const length = isLong
      ? head.readUInt32BE(1)
      : first >= 192
        ? ((first - 192) << 8) + (head[1] as number) + 192
        : first
    const last = toLength(at + lengthBytes, length, bytes)
    return { ...last, parts: [...parts, ...last.parts] }
  }
  return undefined
}

/** The first bytes of a body. Its parts may be shorter: a writer of streams may divide it anywhere. */
export function readBodyStart(read: Read, { parts }: Pick<Packet, 'parts'>, bytes: number): Buffer {
  let start: Buffer = Buffer.alloc(0)
  for (const part of parts) {
    start = Buffer.concat([start, read(part.start, Math.min(part.end, part.start + bytes - start.length))])
    if (start.length >= bytes) break
  }
  return start
}

const countBodyBytes = ({ parts }: Packet) => parts.reduce((sum, { start, end }) => sum + end - start, 0)
const bodyStartBytes = 16

/** Packets that content may begin with. */
const firstTags = new Set([1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 18, 20])
const isFirstTag = (tag: number) => firstTags.has(tag)

/** Encrypted data without the packets of its key has no form of its own: it must fill the content. */
const isSealed = (tag: number) => tag === 9 || tag === 18 || tag === 20
const minSealedBytes = 18

const isPublicKeyAlgorithm = (id = -1) => (id >= 1 && id <= 3) || (id >= 16 && id <= 22) || (id >= 25 && id <= 28)
const isHashAlgorithm = (id = -1) => (id >= 1 && id <= 3) || (id >= 8 && id <= 14)
const isCipher = (id = -1) => (id >= 1 && id <= 4) || (id >= 7 && id <= 13)
const isAead = (id = -1) => id >= 1 && id <= 3

/** Whether a packet begins as its tag demands. */
const isPlausiblePacket = (read: Read, packet: Packet): boolean =>
  isPlausibleBody(packet.tag, readBodyStart(read, packet, bodyStartBytes), countBodyBytes(packet))

/** Whether the first bytes of a body are those of its tag. */
function isPlausibleBody(tag: number, body: Buffer, length: number): boolean {
  const [a, b, c, d] = body
  if (tag === 1)
    return (
      (a === 3 && length > 12 && isPublicKeyAlgorithm(body[9])) ||
      (a === 6 && length > 12 && (b === 0 || b === 21 || b === 33))
    )
  if (tag === 2) {
    return (a === 3 && b === 5) || ((a === 4 || a === 5 || a === 6) && isPublicKeyAlgorithm(c) && isHashAlgorithm(d))
  }
  if (tag === 3) {
    if (a === 4) return isCipher(b) && [0, 1, 3, 4].includes(c ?? -1) && (c === 4 || isHashAlgorithm(d)) && length < 128
    return a === 5 ? isCipher(b) && isAead(c) : a === 6 && isCipher(c) && isAead(d)
  }
  if (tag === 4)
    return (a === 3 && length === 13 && isHashAlgorithm(c) && isPublicKeyAlgorithm(d)) || (a === 6 && length > 40)
  if (tag === 5 || tag === 6 || tag === 7 || tag === 14) {
    return (
      (a === 2 || a === 3
        ? isPublicKeyAlgorithm(body[7])
        : (a === 4 || a === 5 || a === 6) && isPublicKeyAlgorithm(body[5])) && length > 16
    )
  }
  if (tag === 8) return isCompressedBody(body)
  if (tag === 10) return length === 3 && body.toString('latin1', 0, 3) === 'PGP'
  if (tag === 11) return a !== undefined && literalFormats.has(a) && body.length > 5 && length >= 6 + (b ?? 0)
  if (tag === 13) return length > 0 && length < 2048
  if (tag === 18) return (a === 1 && length >= 40) || (a === 2 && isCipher(b) && length > 40)
  if (tag === 20) return a === 1 && isCipher(b) && length > 20
  return true
}

const literalFormats = new Set(['b', 't', 'u', 'l', '1', 'm'].map((text) => text.charCodeAt(0)))

const isCompressedBody = (body: Buffer) => (body[0] ?? 4) <= 3 && isCompressed(body[0] ?? 4, body.subarray(1))

/** Whether compressed data begins as its method demands; deflate alone has no mark, but a type of its first block. */
function isCompressed(method: number, data: Buffer): boolean {
  if (method === 2) return (data[0] ?? 0) % 16 === 8 && data.length > 1 && data.readUInt16BE(0) % 31 === 0
  if (method === 3) return data.toString('latin1', 0, 3) === 'BZh'
  return method === 0 ? ((data[0] ?? 0) & 0x80) !== 0 : ((data[0] ?? 7) & 6) !== 6
}
