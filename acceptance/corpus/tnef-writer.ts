import { u16, u32 } from './bytes.ts'

const attribute = (level: number, id: number, content: Buffer) => {
  const sum = content.reduce((total, byte) => total + byte, 0) & 0xffff
  return Buffer.concat([Buffer.of(level), u32(id), u32(content.length), content, u16(sum)])
}

const rendering = Buffer.from([1, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0])
const interfaceOfMessages = Buffer.from('0703020000000000c000000000000046', 'hex')

/** Writes winmail.dat, Outlook's container of attachments (TNEF), with an attribute that holds an attachment. */
const writeWinmail = (id: number, content: Buffer) =>
  Buffer.concat([
    Buffer.from([0x78, 0x9f, 0x3e, 0x22, 1, 0]),
    attribute(1, 0x00089006, Buffer.from([0, 0, 1, 0])),
    attribute(1, 0x00069007, Buffer.from([0xe4, 4, 0, 0, 0, 0, 0, 0])),
    attribute(1, 0x00078008, Buffer.from('IPM.Microsoft Mail.Note\0')),
    attribute(2, 0x00069002, rendering),
    attribute(2, 0x00018010, Buffer.from('payload.com\0')),
    attribute(2, id, content),
  ])

/** A list with one value, filled up to four bytes. */
const newValues = (tag: number, value: Buffer) =>
  Buffer.concat([u32(1), u32(tag), u32(1), u32(value.length), value, Buffer.alloc((4 - (value.length % 4)) % 4)])

/** An attachment as an attribute of its own. */
export const writeTnef = (data: Buffer) => writeWinmail(0x0006800f, data)

/** An attachment as a value among the properties of the attachment. */
export const writeTnefValue = (data: Buffer) => writeWinmail(0x00069005, newValues(0x37010102, data))

/** An attachment of a message that is an attachment itself. */
export const writeTnefMessage = (data: Buffer) =>
  writeWinmail(0x00069005, newValues(0x3701000d, Buffer.concat([interfaceOfMessages, writeTnef(data)])))
