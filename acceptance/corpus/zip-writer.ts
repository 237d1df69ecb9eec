import { crc32, deflateRawSync } from 'node:zlib'
import { u16, u32 } from './bytes.ts'

/** Fields that stand both in the local header and in the directory, and may differ. */
type Fields = {
  signature: number
  flags: number
  method: number
  crc: number
  packedSize: number
  size: number
  name: string
  extra: Buffer
}

export type ZipMember = {
  name: string
  data: Buffer
  /** 0 stores the data; 8, the default, deflates it. For other methods give `packed`. */
  method?: number
  packed?: Buffer
  /** Fields in which the local header differs from the truth. */
  local?: Partial<Fields>
  /** Fields in which the directory differs from the truth. */
  central?: Partial<Fields & { offset: number; attributes: number }>
  /** `local`: only the local header is written. `central`: only the entry in the directory. */
  only?: 'local' | 'central'
  /** Bytes between the data and the next header, such as a data descriptor. */
  after?: Buffer
}

type ZipOptions = {
  /** Added to all offsets: the number of bytes that stand before the zip. */
  base?: number
  comment?: Buffer
  commentLength?: number
  /** Number of entries that the end record announces. */
  count?: number
  /** Size of the directory that the end record announces. */
  directorySize?: number
  /** Bytes between the last member and the directory. */
  beforeDirectory?: Buffer
  /** Bytes between the directory and the end record. */
  beforeEnd?: Buffer
}

/** Writes a zip whose parts may contradict each other. */
export function writeZip(members: ZipMember[], options: ZipOptions = {}): Buffer {
  const {
    base = 0,
    comment = Buffer.alloc(0),
    beforeDirectory = Buffer.alloc(0),
    beforeEnd = Buffer.alloc(0),
  } = options
  const locals: Buffer[] = []
  const entries: Buffer[] = []
  let place = 0
  for (const member of members) {
    const body = member.packed ?? (member.method === 0 ? member.data : deflateRawSync(member.data))
    const truth = readTruth(member, body)
    const central = { ...truth, ...member.central }
    if (member.only !== 'local')
      entries.push(
        Buffer.concat([
          u32(central.signature === truth.signature ? 0x0201_4b50 : central.signature),
          u16(45),
          ...toCommon(central),
          u16(0),
          u16(0),
          u16(0),
          u32(member.central?.attributes ?? 0),
          u32(member.central?.offset ?? place + base),
          Buffer.from(central.name),
          central.extra,
        ]),
      )
    if (member.only === 'central') continue
    const local = { ...truth, ...member.local }
    const header = [u32(local.signature), ...toCommon(local), Buffer.from(local.name), local.extra]
    const written = Buffer.concat([...header, body, member.after ?? Buffer.alloc(0)])
    locals.push(written)
    place += written.length
  }
  const directory = Buffer.concat(entries)
  const count = u16(options.count ?? entries.length)
  return Buffer.concat([
    ...locals,
    beforeDirectory,
    directory,
    beforeEnd,
    u32(0x0605_4b50),
    u32(0),
    count,
    count,
    u32(options.directorySize ?? directory.length),
    u32(place + beforeDirectory.length + base),
    u16(options.commentLength ?? comment.length),
    comment,
  ])
}

const readTruth = (member: ZipMember, body: Buffer): Fields => ({
  signature: 0x0403_4b50,
  flags: 0,
  method: member.method ?? 8,
  crc: crc32(member.data),
  packedSize: body.length,
  size: member.data.length,
  name: member.name,
  extra: Buffer.alloc(0),
})

const toCommon = (fields: Fields) => [
  u16(20),
  u16(fields.flags),
  u16(fields.method),
  u32(0x0021_0000),
  u32(fields.crc),
  u32(fields.packedSize),
  u32(fields.size),
  u16(Buffer.byteLength(fields.name)),
  u16(fields.extra.length),
]

/** A data descriptor, with the signature that most writers put before it. */
export const newDescriptor = (data: Buffer, packedSize: number, { isSigned = true } = {}) =>
  Buffer.concat([...(isSigned ? [u32(0x0807_4b50)] : []), u32(crc32(data)), u32(packedSize), u32(data.length)])

/** An extra field with an identifier that no program knows. */
export const newExtra = (content: Buffer) => Buffer.concat([u16(0x7a7a), u16(content.length), content])
