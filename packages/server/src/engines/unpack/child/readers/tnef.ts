import type { Doubt } from '../../../../domain/ports/engines.ts'
import { hasSignature, type Members, type Reader, type Reading, type Source } from '../reader.ts'

const signature = Buffer.from([0x78, 0x9f, 0x3e, 0x22])
/** The signature and a key. */
const headBytes = 6
/** Level, identifier and length of an attribute. Two bytes of checksum follow its data, and few programs look at them. */
const attributeHeadBytes = 9
const checksumBytes = 2
/** Attributes of the message and of its attachments. */
const levels = [1, 2]
const maxAttributes = 100_000
const maxTitleBytes = 1000
/** Shorter values hold no file. */
const minMemberBytes = 64

const attributeIds = {
  /** The first attribute of each attachment. */
  renderingData: 0x0006_9002,
  title: 0x0001_8010,
  data: 0x0006_800f,
  messageValues: 0x0006_9003,
  attachmentValues: 0x0006_9005,
}
/** The property that holds the data of an attachment. */
const dataProperty = 0x3701

/** Reads TNEF, in which Outlook sends mail as `winmail.dat`: attachments, texts, and messages within the message. */
export const tnefReader: Reader = {
  name: 'TNEF',
  recognizes: (source) => hasSignature(source, signature),
  read: readTnef,
}

/** An attribute, and the name of the attachment that it belongs to. */
type Attribute = { id: number; start: number; end: number; attachment: { name: string } }

async function readTnef(source: Source, members: Members): Promise<Reading> {
  const doubts = new Set<Doubt>()
  const { attributes, end, isWhole } = listAttributes(source)
  if (!isWhole) doubts.add('UnsupportedContainer')
  for (const attribute of attributes) {
    const { id, start, end: attributeEnd, attachment } = attribute
    if (id === attributeIds.messageValues || id === attributeIds.attachmentValues) {
      if (!(await giveValues(source, members, attribute))) doubts.add('UnsupportedContainer')
    } else if (attributeEnd - start >= minMemberBytes) {
      const path = (id === attributeIds.data && attachment.name) || `[attribute ${id.toString(16).padStart(8, '0')}]`
      await members.give({ path, pieces: source.pieces(start, attributeEnd) })
    }
  }
  return { accounted: [{ start: 0, end }], doubts: [...doubts] }
}

/** Lists the attributes first, because the name of an attachment may stand behind its data. */
function listAttributes(source: Source): { attributes: Attribute[]; end: number; isWhole: boolean } {
  const attributes: Attribute[] = []
  let attachment = { name: '' }
  let at = headBytes
  while (at < source.bytes) {
    const head = source.read(at, at + attributeHeadBytes)
    const isAttribute = head.length === attributeHeadBytes && levels.includes(head[0] as number)
    if (!isAttribute || attributes.length === maxAttributes) return { attributes, end: at, isWhole: isBlank(head) }
    const [id, start] = [head.readUInt32LE(1), at + attributeHeadBytes]
    const end = start + head.readUInt32LE(5)
    if (id === attributeIds.renderingData) attachment = { name: '' }
    if (id === attributeIds.title) attachment.name = toName(source.read(start, Math.min(end, start + maxTitleBytes)))
    attributes.push({ id, start, end, attachment })
    at = end + checksumBytes
  }
  return { attributes, end: source.bytes, isWhole: at === source.bytes }
}

/** Gives the values of a list, and returns whether it could be read to its end. */
async function giveValues(source: Source, members: Members, { id, start, end, attachment }: Attribute) {
  for (const value of listMapiValues(source, start, Math.min(end, source.bytes))) {
    if (value === 'damaged') return false
    if (value.end - value.start < minMemberBytes) continue
    const isData = id === attributeIds.attachmentValues && value.id === dataProperty
    const path = (isData && attachment.name) || `[value ${value.id.toString(16).padStart(4, '0')}]`
    await members.give({ path, pieces: source.pieces(value.start, value.end) })
  }
  return true
}

/** Some programs end the file with zeros or a line end. */
const isBlank = (bytes: Buffer) => bytes.every((byte) => byte === 0 || byte === 0x0a || byte === 0x0d)

const toName = (bytes: Buffer) => bytes.toString('latin1').split('\0')[0] ?? ''

/** A value of a list of MAPI properties that has a length of its own, or a row of values that have not. */
type MapiValue = { id: number; start: number; end: number }

/** The bytes of values that all have the same length, by their type. They are filled up to four. */
const fixedBytes: Record<number, number> = {
  1: 4,
  2: 4,
  3: 4,
  4: 4,
  5: 8,
  6: 8,
  7: 8,
  10: 4,
  11: 4,
  20: 8,
  64: 8,
  72: 16,
}
const propertyTypes = { object: 0x0d, text: 0x1e, wideText: 0x1f, binary: 0x102 }
const manyFlag = 0x1000
const firstNamedId = 0x8000
const guidBytes = 16
const maxValues = 100_000

const toPadded = (bytes: number) => Math.ceil(bytes / 4) * 4

/** Lists the texts, binary values, objects and rows of values of a property list, and `damaged` where it breaks. */
function* listMapiValues(source: Source, start: number, end: number): Generator<MapiValue | 'damaged'> {
  let at = start
  let values = 0

  /** Reads a number, which is beyond everything where the list has ended. */
  function readNumber(): number {
    const bytes = source.read(at, at + 4)
    at += 4
    return bytes.length < 4 || at > end ? Number.POSITIVE_INFINITY : bytes.readUInt32LE(0)
  }

  function skipName() {
    at += guidBytes
    const isText = readNumber() === 1
    const value = readNumber()
    if (isText) at += toPadded(value)
  }

  for (let left = readNumber(); left > 0; left--) {
    const tag = readNumber()
    if (!Number.isFinite(tag) || ++values > maxValues) return yield 'damaged'
    const [type, id] = [tag & 0xffff, tag >>> 16]
    if (id >= firstNamedId) skipName()
    const isMany = (type & manyFlag) !== 0
    const kind = type & ~manyFlag
    const bytes = fixedBytes[kind]
    if (bytes !== undefined) {
      const count = isMany ? readNumber() : 1
      const valueEnd = at + bytes * count
      if (isMany && valueEnd <= end) yield { id, start: at, end: valueEnd }
      at = valueEnd
    } else if (Object.values(propertyTypes).includes(kind)) {
      for (let count = readNumber(); count > 0; count--) {
        const length = readNumber()
        if (at + length > end || ++values > maxValues) return yield 'damaged'
        // An object begins with the identifier of its interface.
        yield { id, start: kind === propertyTypes.object ? at + guidBytes : at, end: at + length }
        at += toPadded(length)
      }
    } else return yield 'damaged'
    // The last value may lack the bytes that fill it up.
    if (at > end + 3) return yield 'damaged'
  }
}
