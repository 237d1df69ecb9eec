import { constants, crc32, deflateRawSync, deflateSync } from 'node:zlib'

/** The EICAR test virus, split in halves so that no scanner reports this source file. */
export const eicar = Buffer.from(['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD', '-ANTIVIRUS-TEST-FILE!$H+H*'].join(''))
export const eicarSignal = 'Virus:Eicar-Test-Signature'

/** `packed`: the data is already a deflate stream of `bytes` bytes with this checksum. */
type Member = { name: string; data: Buffer | string; packed?: { bytes: number; crc: number } }

export const eicarMember: Member = { name: 'eicar.com', data: eicar }

/** A zip with deflated members; `wide` writes ZIP64, with 64-bit fields wherever the format allows them. */
export function newZip(members: Member[], { wide = false } = {}): Buffer {
  const locals: Buffer[] = []
  const entries: Buffer[] = []
  let offset = 0
  for (const { name, data, packed } of members) {
    const body = packed === undefined ? deflateRawSync(data) : Buffer.from(data)
    const bytes = packed?.bytes ?? Buffer.byteLength(data)
    const sizes = wide ? [u32(0xffff_ffff), u32(0xffff_ffff)] : [u32(body.length), u32(bytes)]
    const extra = wide ? [u16(1), u16(16), u64(bytes), u64(body.length)] : []
    const lengths = [u16(Buffer.byteLength(name)), u16(wide ? 20 : 0)]
    const common = [u16(45), u16(0), u16(8), u16(0), u16(0x21), u32(packed?.crc ?? crc32(data)), ...sizes, ...lengths]
    const local = Buffer.concat([u32(0x0403_4b50), ...common, Buffer.from(name), ...extra, body])
    const place = [u16(0), u16(0), u16(0), u32(0), u32(offset)]
    entries.push(Buffer.concat([u32(0x0201_4b50), u16(45), ...common, ...place, Buffer.from(name), ...extra]))
    locals.push(local)
    offset += local.length
  }
  const directory = Buffer.concat(entries)
  const count = members.length
  const wideEnd = [u32(0x0606_4b50), u64(44), u16(45), u16(45), u32(0), u32(0), u64(count), u64(count)]
  const locator = [u32(0x0706_4b50), u32(0), u64(offset + directory.length), u32(1)]
  const ends = wide ? [...wideEnd, u64(directory.length), u64(offset), ...locator] : []
  const places = wide ? [u32(0xffff_ffff), u32(0xffff_ffff)] : [u32(directory.length), u32(offset)]
  const counted = u16(wide ? 0xffff : count)
  return Buffer.concat([...locals, directory, ...ends, u32(0x0605_4b50), u32(0), counted, counted, ...places, u16(0)])
}

export function newTar(members: Member[]): Buffer {
  const blocks = members.flatMap(({ name, data }) => {
    const content = Buffer.from(data)
    const head = Buffer.alloc(512)
    head.write(name)
    head.write('0000644\x000000000\x000000000\0', 100)
    head.write(`${content.length.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0        0`, 124)
    head.write('ustar\x0000', 257)
    const sum = head.reduce((total, byte) => total + byte, 0)
    head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    return [head, content, Buffer.alloc((512 - (content.length % 512)) % 512)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

/** A RAR 4 archive with one uncompressed member. */
export function newRar4({ name, data }: Member): Buffer {
  const content = Buffer.from(data)
  const block = (kind: number, flags: number, body: Buffer[], after = Buffer.alloc(0)) => {
    const bytes = Buffer.concat(body)
    const head = Buffer.concat([Buffer.of(kind), u16(flags), u16(7 + bytes.length), bytes])
    return Buffer.concat([u16(crc32(head) & 0xffff), head, after])
  }
  const sizes = [u32(content.length), u32(content.length), Buffer.of(3), u32(crc32(content)), u32(0x21)]
  const file = [...sizes, Buffer.of(20, 0x30), u16(name.length), u32(0o100644), Buffer.from(name)]
  const blocks = [block(0x73, 0, [Buffer.alloc(6)]), block(0x74, 0x8000, file, content), block(0x7b, 0x4000, [])]
  return Buffer.concat([Buffer.from('Rar!\x1a\x07\x00', 'latin1'), ...blocks])
}

/** A RAR 5 archive with one uncompressed member of less than 128 bytes, whose length fits into one byte. */
export function newRar5({ name, data }: Member): Buffer {
  const content = Buffer.from(data)
  const block = (body: Buffer, after = Buffer.alloc(0)) => {
    const head = Buffer.concat([Buffer.of(body.length), body])
    return Buffer.concat([u32(crc32(head)), head, after])
  }
  const sizes = Buffer.of(2, 2, content.length, 4, content.length, 0xa4, 0x83, 0x02)
  const file = Buffer.concat([sizes, u32(crc32(content)), Buffer.of(0, 1, name.length), Buffer.from(name)])
  const blocks = [block(Buffer.of(1, 0, 0)), block(file, content), block(Buffer.of(5, 0, 0))]
  return Buffer.concat([Buffer.from('Rar!\x1a\x07\x01\x00', 'latin1'), ...blocks])
}

/** A Word document with the content as an embedded object. */
export const newDocx = (data: Buffer): Buffer =>
  newZip([
    { name: '[Content_Types].xml', data: '<?xml version="1.0"?><Types/>' },
    { name: 'word/document.xml', data: '<?xml version="1.0"?><w:document/>' },
    { name: 'word/embeddings/oleObject1.bin', data },
  ])

/** A document with a password as Office writes it: an OLE2 file that contains the encrypted document. */
export function newEncryptedDocx(): Buffer {
  const header = Buffer.alloc(512)
  Buffer.from('d0cf11e0a1b11ae1', 'hex').copy(header)
  Buffer.concat([0x3e, 3, 0xfffe, 9, 6].map(u16)).copy(header, 24)
  const none = 0xffff_fffe
  Buffer.concat([1, 1, 0, 0, none, 0, none, 0, 0].map(u32)).copy(header, 44)
  header.fill(0xff, 80)
  const table = Buffer.alloc(512, 0xff)
  const end = u32(none)
  // Sector 0 is this table, sector 1 the directory, then two streams of eight sectors.
  Buffer.concat([
    u32(0xffff_fffd),
    end,
    ...[2, 10].flatMap((first) => [...range(first + 1, first + 8).map(u32), end]),
  ]).copy(table)
  const directory = Buffer.concat([
    oleEntry('Root Entry', 5, { child: 1, start: none, bytes: 0 }),
    oleEntry('EncryptedPackage', 2, { right: 2, start: 2, bytes: 4096 }),
    oleEntry('EncryptionInfo', 2, { start: 10, bytes: 4096 }),
    Buffer.alloc(128),
  ])
  const info = Buffer.concat([u16(4), u16(4), u32(0x40), Buffer.from('<?xml version="1.0"?><encryption/>')])
  const streams = Buffer.concat([u64(4000), Buffer.alloc(4088, 0xa7), info, Buffer.alloc(4096 - info.length)])
  return Buffer.concat([header, table, directory, streams])
}

function oleEntry(name: string, kind: number, at: { child?: number; right?: number; start: number; bytes: number }) {
  const entry = Buffer.alloc(128)
  entry.write(name, 'utf16le')
  u16(name.length * 2 + 2).copy(entry, 64)
  entry[66] = kind
  entry[67] = 1
  Buffer.concat([-1, at.right ?? -1, at.child ?? -1].map(u32)).copy(entry, 68)
  Buffer.concat([u32(at.start), u64(at.bytes)]).copy(entry, 116)
  return entry
}

/**
 * A PDF page with an attached file. `encrypted` makes the file demand a password; `table: false` leaves out the table
 * of objects, so that readers must search for them.
 */
export function newPdf(data: Buffer, { encrypted = false, table = true } = {}): Buffer {
  const body = deflateSync(data)
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a.com) 4 0 R] >> >> >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R >>',
    '<< /Type /Filespec /F (a.com) /EF << /F 5 0 R >> >>',
    `<< /Type /EmbeddedFile /Filter /FlateDecode /Length ${body.length} >>\nstream\n${body.toString('latin1')}\nendstream`,
    ...(encrypted ? [`<< /Filter /Standard /V 1 /R 2 /O <${'a5'.repeat(32)}> /U <${'5a'.repeat(32)}> /P -44 >>`] : []),
  ]
  let text = '%PDF-1.4\n'
  const places = objects.map((object, n) => {
    const place = text.length
    text += `${n + 1} 0 obj\n${object}\nendobj\n`
    return `${String(place).padStart(10, '0')} 00000 n \n`
  })
  const start = text.length
  const size = objects.length + 1
  if (table) text += `xref\n0 ${size}\n0000000000 65535 f \n${places.join('')}`
  const lock = encrypted ? `/Encrypt 6 0 R /ID [<${'01'.repeat(16)}> <${'01'.repeat(16)}>]` : ''
  text += `trailer\n<< /Size ${size} /Root 1 0 R ${lock} >>\n${table ? `startxref\n${start}\n` : ''}%%EOF\n`
  return Buffer.from(text, 'latin1')
}

export function newMail(data: Buffer): Buffer {
  const head =
    'From: a@example.org\r\nTo: b@example.org\r\nSubject: x\r\nMIME-Version: 1.0\r\n' +
    'Content-Type: multipart/mixed; boundary="edge"\r\n\r\n--edge\r\nContent-Type: text/plain\r\n\r\nhello\r\n--edge\r\n' +
    'Content-Type: application/octet-stream; name="a.com"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
  return Buffer.from(`${head}${data.toString('base64')}\r\n--edge--\r\n`)
}

/** A deflate stream of zeros, about a thousandth of its unpacked size, made by repeating one block. */
export function newZeros(megabytes: number): { data: Buffer; packed: { bytes: number; crc: number } } {
  const zeros = Buffer.alloc(2 ** 20)
  const block = deflateRawSync(zeros, { level: 9, finishFlush: constants.Z_FULL_FLUSH })
  let crc = 0
  for (let done = 0; done < megabytes; done++) crc = crc32(zeros, crc)
  const data = Buffer.concat([...Array<Buffer>(megabytes).fill(block), Buffer.of(3, 0)])
  return { data, packed: { bytes: megabytes * 2 ** 20, crc } }
}

export function newGzipOf({ data, packed }: ReturnType<typeof newZeros>): Buffer {
  return Buffer.concat([Buffer.from('1f8b08000000000000ff', 'hex'), data, u32(packed.crc), u32(packed.bytes)])
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n)
const u16 = (value: number) => Buffer.of(value & 255, (value >>> 8) & 255)
const u64 = (value: number) => Buffer.concat([u32(value % 2 ** 32), u32(Math.floor(value / 2 ** 32))])
function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}
