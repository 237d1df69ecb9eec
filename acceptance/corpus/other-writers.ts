import { plainText, u16, u32 } from './bytes.ts'

/** The checksum of LHA and ARC. */
function crc16(bytes: Buffer): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1
  }
  return crc
}

/** An LHA archive with one stored member and a header of the given level. Debian has no program that writes LHA. */
export function newLha(data: Buffer, name: string, level: 0 | 1 | 2): Buffer {
  const sizes = [u32(data.length), u32(data.length), u32(level === 2 ? 1_600_000_000 : 0x5000_0000)]
  const attributes = Buffer.of(0x20, level)
  const method = Buffer.from('-lh0-')
  const nameField = Buffer.concat([Buffer.of(name.length), Buffer.from(name)])
  if (level === 2) {
    const extended = Buffer.concat([u16(3 + name.length), Buffer.of(1), Buffer.from(name), u16(0)])
    const fixed = Buffer.concat([method, ...sizes, attributes, u16(crc16(data)), Buffer.from('U')])
    const head = Buffer.concat([u16(2 + fixed.length + extended.length), fixed, extended])
    return Buffer.concat([head, data, Buffer.of(0)])
  }
  const rest = level === 1 ? Buffer.concat([Buffer.from('U'), u16(0)]) : Buffer.alloc(0)
  const body = Buffer.concat([method, ...sizes, attributes, nameField, u16(crc16(data)), rest])
  const sum = body.reduce((total, byte) => (total + byte) & 255, 0)
  return Buffer.concat([Buffer.of(body.length, sum), body, data, Buffer.of(0)])
}

/** An archive of Electron: a header in JSON, then the files. */
export function newAsar(files: Record<string, Buffer>): Buffer {
  let offset = 0
  const entries = Object.entries(files).map(([name, data]) => {
    const entry = { size: data.length, offset: String(offset) }
    offset += data.length
    return [name, entry] as const
  })
  const text = Buffer.from(JSON.stringify({ files: Object.fromEntries(entries) }))
  const padded = Buffer.concat([text, Buffer.alloc((4 - (text.length % 4)) % 4)])
  const head = [u32(4), u32(padded.length + 8), u32(padded.length + 4), u32(text.length), padded]
  return Buffer.concat([...head, ...Object.values(files)])
}

/** A record of a web archive, with the response of a server or with a file. */
export const newWarc = (
  type: 'response' | 'resource',
  data: Buffer,
  contentType = 'application/octet-stream',
): Buffer => {
  const http = `HTTP/1.1 200 OK\r\nContent-Type: ${contentType}\r\nContent-Length: ${data.length}\r\n\r\n`
  const block = type === 'response' ? Buffer.concat([Buffer.from(http), data]) : data
  const kind = type === 'response' ? 'application/http; msgtype=response' : contentType
  const head = [
    'WARC/1.0',
    `WARC-Type: ${type}`,
    'WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>',
    'WARC-Target-URI: http://www.example.org/payload.com',
    'WARC-Date: 2020-01-01T00:00:00Z',
    `Content-Type: ${kind}`,
    `Content-Length: ${block.length}`,
    '',
    '',
  ].join('\r\n')
  return Buffer.concat([Buffer.from(head), block, Buffer.from('\r\n\r\n')])
}

/** A member of an ar archive. */
const newArMember = (name: string, data: Buffer) =>
  Buffer.concat([
    Buffer.from(`${name.padEnd(16)}${'0'.padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}`),
    Buffer.from(`${String(data.length).padEnd(10)}\`\n`),
    data,
    Buffer.alloc(data.length % 2, '\n'),
  ])

/** An ar archive with a long name as BSD writes it, before the data. */
export const newBsdAr = (name: string, data: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from('!<arch>\n'),
    newArMember('readme.txt', plainText),
    newArMember(`#1/${name.length}`, Buffer.concat([Buffer.from(name), data])),
  ])
