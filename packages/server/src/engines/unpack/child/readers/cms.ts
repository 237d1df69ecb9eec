import { findCmsKind, findTypeKind, isCompressedType, isDataType } from '../../../../domain/content/document-formats.ts'
import { decompress } from '../inflate.ts'
import type { Members, Reader, Reading, Source } from '../reader.ts'

const headBytes = 64
const maxDepth = 32

/** Reads CMS (PKCS #7), in DER and BER: gives signed and compressed content, and tells of encrypted content. */
export const cmsReader: Reader = {
  name: 'CMS',
  recognizes: (source) => findCmsKind(source.read(0, headBytes)) !== undefined,
  read: readCms,
}

/** A value of ASN.1 in BER. */
type Value = {
  tag: number
  at: number
  /** The start of the content. */
  start: number
  /** The end of the content. A value without a length extends up to its end mark. */
  end: number
  hasLength: boolean
}

const tags = { integer: 0x02, octets: 0x04, name: 0x06, octetsInParts: 0x24, sequence: 0x30, explicit: 0xa0 }

/** The value at a position. Only the outer end is known of a value without a length. */
function readValue(source: Source, at: number, end: number): Value | undefined {
  const head = source.read(at, Math.min(end, at + 10))
  const tag = head[0]
  const first = head[1]
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f || first > 0x88) return undefined
  const lengthBytes = first & 0x80 ? first & 0x7f : 0
  if (head.length < 2 + lengthBytes) return undefined
  const start = at + 2 + lengthBytes
  if (first === 0x80) return (tag & 0x20) === 0 ? undefined : { tag, at, start, end, hasLength: false }
  const length = lengthBytes === 0 ? first : Number(`0x${head.toString('hex', 2, 2 + lengthBytes)}`)
  return { tag, at, start, end: Math.min(end, start + length), hasLength: true }
}

const isEndMark = (source: Source, at: number) => source.read(at, at + 2).equals(endMark)
const endMark = Buffer.alloc(2)

/** The position behind a value; undefined when it is damaged or cut. */
function findEnd(source: Source, value: Value, depth = 0): number | undefined {
  if (value.hasLength) return value.end
  if (depth > maxDepth) return undefined
  let at = value.start
  while (at < value.end) {
    if (isEndMark(source, at)) return at + 2
    const child = readValue(source, at, value.end)
    const next = child === undefined ? undefined : findEnd(source, child, depth + 1)
    if (next === undefined || next <= at) return undefined
    at = next
  }
  return undefined
}

/** Yields the values in a value, as far as they can be read. */
function* listChildren(source: Source, value: Value): Generator<Value> {
  let at = value.start
  while (at < value.end) {
    if (!value.hasLength && isEndMark(source, at)) return
    const child = readValue(source, at, value.end)
    if (child === undefined) return
    yield child
    const next = findEnd(source, child)
    if (next === undefined || next <= at) return
    at = next
  }
}

/** Yields the bytes of a string of octets, which may consist of parts; the whole value when it is no such string. */
function* readOctets(source: Source, value: Value, depth = 0): Generator<Buffer> {
  if (value.tag === tags.octets) {
    yield* source.pieces(value.start, value.end)
  } else if (value.tag === tags.octetsInParts && depth < maxDepth) {
    for (const part of listChildren(source, value)) yield* readOctets(source, part, depth + 1)
  } else {
    yield* source.pieces(value.at, findEnd(source, value) ?? value.end)
  }
}

async function readCms(source: Source, members: Members): Promise<Reading> {
  const outer = readValue(source, 0, source.bytes)
  if (outer === undefined) return { accounted: [], doubts: [] }
  const end = findEnd(source, outer)
  const isWhole = end !== undefined && end - outer.start === getLength(source, outer, end)
  const accounted = [{ start: 0, end: end ?? source.bytes }]
  const kind = findCmsKind(source.read(0, headBytes))
  if (kind === 'encrypted' || kind === 'keystore') return { accounted, doubts: ['EncryptedContent'] }
  const [name, explicit] = listChildren(source, outer)
  if (name === undefined || explicit?.tag !== tags.explicit) return { accounted, doubts: [] }
  const [content] = listChildren(source, explicit)
  if (content === undefined) return { accounted, doubts: isWhole ? [] : ['UnsupportedContainer'] }
  const isRead = await giveContent(source, members, source.read(name.start, name.end), content)
  return { accounted, doubts: isWhole && isRead ? [] : ['UnsupportedContainer'] }
}

/** The length that a value states, or the one that was found for a value without a length. */
function getLength(source: Source, value: Value, end: number): number {
  if (!value.hasLength) return end - value.start
  const field = source.read(value.at + 1, value.start)
  return field.length === 1 ? (field[0] as number) : Number(`0x${field.toString('hex', 1)}`)
}

/** Gives what a structure encloses. Returns whether all of it could be read. */
async function giveContent(source: Source, members: Members, type: Buffer, content: Value): Promise<boolean> {
  if (content.tag !== tags.sequence) return giveOctets(members, readOctets(source, content))
  for (const child of listChildren(source, content)) {
    // Data with time stamps has no inner structure around its content.
    if (child.tag === tags.octets || child.tag === tags.octetsInParts) {
      return giveOctets(members, readOctets(source, child))
    }
    if (child.tag !== tags.sequence) continue
    const [name, explicit] = listChildren(source, child)
    if (name?.tag !== tags.name || explicit?.tag !== tags.explicit) continue
    const [inner] = listChildren(source, explicit)
    if (inner === undefined) continue
    const octets = readOctets(source, inner)
    const innerType = source.read(name.start, Math.min(name.end, name.start + headBytes))
    const bytes = isCompressedType(type) ? decompress('zlib', octets).pieces : octets
    const isNested = !isDataType(innerType) && findTypeKind(innerType) !== undefined
    return giveOctets(members, isNested ? wrap(innerType, bytes) : bytes)
  }
  return true
}

async function giveOctets(members: Members, pieces: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<boolean> {
  try {
    await members.give({ path: '[signed content]', pieces })
    return true
  } catch {
    return false
  }
}

/** A structure in another one has no name of its own, so that it is given with the one that the outer states. */
async function* wrap(type: Buffer, content: Iterable<Buffer> | AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield Buffer.from([tags.sequence, 0x80, tags.name, type.length])
  yield type
  yield Buffer.from([tags.explicit, 0x80])
  yield* content
  yield Buffer.alloc(4)
}
