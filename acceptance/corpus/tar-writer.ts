/** Fields of a tar header. Sizes and checksums may be given as the bytes that stand there. */
export type TarEntry = {
  name: string
  data?: Buffer
  type?: string
  size?: number | Buffer
  magic?: string
  linkName?: string
  prefix?: string
  checksum?: 'unsigned' | 'signed' | 'wrong' | 'blank'
  /** Bytes that replace a part of the header before the checksum is computed. */
  change?: [place: number, bytes: Buffer][]
}

const toOctal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`

/** A size in binary, as GNU tar writes large ones. Negative numbers are legal there. */
export function toBase256(value: number): Buffer {
  const field = Buffer.alloc(12, value < 0 ? 0xff : 0)
  field.writeBigInt64BE(BigInt(value), 4)
  if (value >= 0) field[0] = 0x80
  return field
}

/** Writes a header and its data, padded to whole blocks. */
export function writeEntry(entry: TarEntry): Buffer {
  const { name, data = Buffer.alloc(0), type = '0', size = data.length, magic = 'ustar\x0000' } = entry
  const head = Buffer.alloc(512)
  head.write(name.slice(0, 100))
  head.write('0000644\x000000000\x000000000\0', 100)
  if (typeof size === 'number') head.write(toOctal(size, 11), 124)
  else size.copy(head, 124)
  head.write(toOctal(0, 11), 136)
  head.fill(' ', 148, 156)
  head.write(type, 156, 'latin1')
  head.write(entry.linkName ?? '', 157)
  head.write(magic, 257, 'latin1')
  head.write(entry.prefix ?? '', 345)
  for (const [place, bytes] of entry.change ?? []) bytes.copy(head, place)
  const sum = head.reduce((total, byte) => total + (entry.checksum === 'signed' && byte > 127 ? byte - 256 : byte), 0)
  if (entry.checksum !== 'blank') head.write(`${toOctal(entry.checksum === 'wrong' ? sum + 1 : sum, 6)} `, 148)
  return Buffer.concat([head, pad(data)])
}

/** Fills the last block with zeros. */
const pad = (data: Buffer): Buffer => Buffer.concat([data, Buffer.alloc((512 - (data.length % 512)) % 512)])

/** Two blocks of zeros, the end of an archive. */
export const tarEnd = Buffer.alloc(1024)

export const writeTar = (...entries: (TarEntry | Buffer)[]): Buffer =>
  Buffer.concat([...entries.map((entry) => (Buffer.isBuffer(entry) ? entry : writeEntry(entry))), tarEnd])

/** A header of extended attributes for the next entry, or with type `g` for all entries. */
export const writePax = (records: Record<string, string | number> | [string, string][], type = 'x'): Buffer =>
  writeEntry({
    name: 'PaxHeaders/x',
    type,
    data: Buffer.concat((Array.isArray(records) ? records : Object.entries(records)).map(toRecord)),
  })

/** The length of a record counts its own digits too. */
function toRecord([key, value]: [string, string | number]): Buffer {
  const text = ` ${key}=${value}\n`
  const bytes = Buffer.byteLength(text)
  const digits = String(bytes + String(bytes).length).length
  return Buffer.from(`${bytes + digits}${text}`)
}
