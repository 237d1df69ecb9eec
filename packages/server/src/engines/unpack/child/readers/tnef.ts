import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Members, Range, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'
import { listMapiValues } from './mapi-values.ts'

const magic = Buffer.from([0x78, 0x9f, 0x3e, 0x22])
/** The signature and a key. */
const headBytes = 6
/** Level, identifier and length of an attribute. Two bytes of checksum follow its data, and few programs look at them. */
const attributeHeadBytes = 9
const checksumBytes = 2
const levels = { message: 1, attachment: 2 }
const maxAttributes = 100_000
const maxTitleBytes = 1000
/** Shorter values hold no file. */
const minMemberBytes = 64

const ids = {
  renderingData: 0x0006_9002,
  title: 0x0001_8010,
  messageValues: 0x0006_9003,
  attachmentValues: 0x0006_9005,
}

/** Reads TNEF, in which Outlook sends mail as `winmail.dat`: attachments, texts, and messages within the message. */
export const tnefReader: Reader = {
  name: 'TNEF',
  recognizes: (source) => source.read(0, magic.length).equals(magic),
  read: async (source, members) => readTnef(source, members),
}

type Attribute = { level: number; id: number; start: number; end: number }

async function readTnef(source: Source, members: Members): Promise<Reading> {
  const accounted: Range[] = [{ start: 0, end: headBytes }]
  const doubts = new Set<Doubt>()
  let title = ''
  let at = headBytes
  for (let count = 0; at < source.bytes; count++) {
    const attribute = count === maxAttributes ? undefined : readAttribute(source, at)
    if (attribute === undefined) {
      if (!isBlank(source.read(at, at + attributeHeadBytes))) doubts.add('UnsupportedContainer')
      break
    }
    const { id, start, end } = attribute
    if (end > source.bytes) doubts.add('UnsupportedContainer')
    if (id === ids.renderingData) title = ''
    if (id === ids.title) title = toName(source.read(start, Math.min(end, start + maxTitleBytes)))
    if (id === ids.messageValues || id === ids.attachmentValues) {
      if (!(await giveValues(source, members, attribute, title))) doubts.add('UnsupportedContainer')
    } else if (end - start >= minMemberBytes) {
      await members.give({ path: title || toLabel(id), pieces: source.pieces(start, end) })
    }
    at = Math.min(source.bytes, end + checksumBytes)
    accounted.push({ start: start - attributeHeadBytes, end: at })
  }
  return { accounted, doubts: [...doubts] }
}

function readAttribute(source: Source, at: number): Attribute | undefined {
  const head = source.read(at, at + attributeHeadBytes)
  const level = head[0] ?? 0
  if (head.length < attributeHeadBytes || !Object.values(levels).includes(level)) return undefined
  const start = at + attributeHeadBytes
  return { level, id: head.readUInt32LE(1), start, end: start + head.readUInt32LE(5) }
}

/** Gives the values of a list, and returns whether it could be read to its end. */
async function giveValues(source: Source, members: Members, { id, start, end }: Attribute, title: string) {
  for (const value of listMapiValues(source, start, Math.min(end, source.bytes))) {
    if (value === 'damaged') return false
    if (value.end - value.start < minMemberBytes) continue
    const isData = id === ids.attachmentValues && value.id === attachmentData
    await members.give({
      path: (isData && title) || `[value ${value.id.toString(16).padStart(4, '0')}]`,
      pieces: source.pieces(value.start, value.end),
    })
  }
  return true
}

const attachmentData = 0x3701

/** Some programs end the file with zeros or a line end. */
const isBlank = (bytes: Buffer) => bytes.every((byte) => byte === 0 || byte === 0x0a || byte === 0x0d)

const toName = (bytes: Buffer) => bytes.toString('latin1').split('\0')[0] ?? ''

const toLabel = (id: number) => `[attribute ${id.toString(16).padStart(8, '0')}]`
