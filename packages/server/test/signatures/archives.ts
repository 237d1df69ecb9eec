import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { crc32, deflateRawSync, deflateSync } from 'node:zlib'
import start, { type SevenZipModuleFactory } from '7z-wasm'

/** A zip with one member. With `method`, `data` is stored unchanged, for methods that cannot be written here. */
export type ZipMember = { name: string; data: Uint8Array | string; method?: number }

export function zip(members: ZipMember[], { zip64 = false } = {}): Buffer {
  const locals: Buffer[] = []
  const centrals: Buffer[] = []
  let offset = 0
  for (const { name, data, method = 8 } of members) {
    const clear = Buffer.from(data)
    const stored = method === 8 ? deflateRawSync(clear) : clear
    const sizes = zip64 ? [0xffffffff, 0xffffffff] : [stored.length, clear.length]
    const extra = zip64 ? numbers([2, 1], [2, 16], [8, clear.length], [8, stored.length]) : Buffer.alloc(0)
    const common = numbers(
      ...([
        [2, zip64 ? 45 : 20],
        [2, 0],
        [2, method],
        [4, 0x210000],
        [4, crc32(clear)],
      ] as Field[]),
      ...([
        [4, sizes[0]],
        [4, sizes[1]],
        [2, name.length],
        [2, extra.length],
      ] as Field[]),
    )
    const local = Buffer.concat([numbers([4, 0x04034b50]), common, Buffer.from(name), extra, stored])
    const place = numbers([2, 0], [2, 0], [2, 0], [4, 0], [4, offset])
    centrals.push(Buffer.concat([numbers([4, 0x02014b50], [2, 45]), common, place, Buffer.from(name), extra]))
    locals.push(local)
    offset += local.length
  }
  const directory = Buffer.concat(centrals)
  const count = members.length
  const end64 = zip64
    ? numbers(
        ...([
          [4, 0x06064b50],
          [8, 44],
          [2, 45],
          [2, 45],
          [4, 0],
          [4, 0],
          [8, count],
          [8, count],
        ] as Field[]),
        ...([
          [8, directory.length],
          [8, offset],
          [4, 0x07064b50],
          [4, 0],
          [8, offset + directory.length],
          [4, 1],
        ] as Field[]),
      )
    : Buffer.alloc(0)
  const end = zip64
    ? numbers([4, 0x06054b50], [4, 0], [4, 0xffffffff], [4, 0xffffffff], [4, 0xffffffff], [2, 0])
    : numbers([4, 0x06054b50], [4, 0], [2, count], [2, count], [4, directory.length], [4, offset], [2, 0])
  return Buffer.concat([...locals, directory, end64, end])
}

export function tar(name: string, data: Uint8Array | string): Buffer {
  const content = Buffer.from(data)
  const header = Buffer.alloc(512)
  header.write(name, 0)
  header.write('0000644\0 0000000\0 0000000\0', 100)
  header.write(`${content.length.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0        0`, 124)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  const padding = Buffer.alloc((512 - (content.length % 512)) % 512)
  return Buffer.concat([header, content, padding, Buffer.alloc(1024)])
}

/** A PDF page with one attached file, deflated. */
export function pdf(data: string): Buffer {
  const body = deflateSync(data)
  return Buffer.concat([
    Buffer.from(
      '%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a.com) 4 0 R] >> >> >>\nendobj\n' +
        '2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R >>\nendobj\n' +
        '4 0 obj\n<< /Type /Filespec /F (a.com) /EF << /F 5 0 R >> >>\nendobj\n' +
        `5 0 obj\n<< /Type /EmbeddedFile /Filter /FlateDecode /Length ${body.length} >>\nstream\n`,
    ),
    body,
    Buffer.from('\nendstream\nendobj\ntrailer\n<< /Size 6 /Root 1 0 R >>\n%%EOF\n'),
  ])
}

export function mail(data: string): string {
  const part = (headers: string, body: string) => `--edge\n${headers}\n\n${body}\n`
  const attachment = 'Content-Type: application/octet-stream; name="a.com"\nContent-Transfer-Encoding: base64'
  return `From: a@example.org\nTo: b@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="edge"\n\n${part('Content-Type: text/plain', 'hello')}${part(attachment, Buffer.from(data).toString('base64'))}--edge--\n`
}

/** A compound file (OLE2) of up to three streams of 4 KB, without the usual hiding place for short streams. */
export function compoundFile(streams: Record<string, Uint8Array>): Buffer {
  const entries = Object.entries(streams)
  const content = entries.map(([, data]) => Buffer.concat([data, Buffer.alloc(4096 - data.length)]))
  const header = Buffer.alloc(512)
  Buffer.from('d0cf11e0a1b11ae1', 'hex').copy(header)
  numbers([2, 0x3e], [2, 3], [2, 0xfffe], [2, 9], [2, 6]).copy(header, 24)
  numbers([4, 1], [4, 1], [4, 0], [4, 0], [4, 0xfffffffe], [4, 0], [4, 0xfffffffe], [4, 0], [4, 0]).copy(header, 44)
  header.fill(0xff, 80)
  const chains = entries.flatMap((_, stream) =>
    Array.from({ length: 8 }, (_, sector): Field => [4, sector === 7 ? 0xfffffffe : 2 + stream * 8 + sector + 1]),
  )
  const table = Buffer.alloc(512, 0xff)
  numbers([4, 0xfffffffd], [4, 0xfffffffe], ...chains).copy(table)
  const directory = Buffer.concat([
    directoryEntry('Root Entry', 5, { child: 1, start: 0xfffffffe, size: 0 }),
    ...entries.map(([name, { length: size }], index) =>
      directoryEntry(name, 2, { right: index + 2 <= entries.length ? index + 2 : -1, start: 2 + index * 8, size }),
    ),
    Buffer.alloc(512),
  ]).subarray(0, 512)
  return Buffer.concat([header, table, directory, ...content])
}

/** An Office file with one macro module, packed the way of Office (as literals only) behind a compiled form of it. */
export function macroFile(source: string): Buffer {
  const record = (id: number, data: Uint8Array | string) =>
    Buffer.concat([numbers([2, id], [4, data.length]), Buffer.from(data)])
  const name = 'Module1'
  const cache = Buffer.from(Array.from({ length: 1024 }, (_, index) => (index * 37) & 0xff))
  const dir = Buffer.concat([
    record(1, numbers([4, 1])),
    record(2, numbers([4, 1033])),
    record(0x14, numbers([4, 1033])),
    record(3, numbers([2, 1252])),
    record(4, 'Project'),
    record(5, ''),
    record(0x40, ''),
    record(6, ''),
    record(0x3d, ''),
    record(7, numbers([4, 0])),
    record(8, numbers([4, 0])),
    numbers([2, 9], [4, 4], [4, 1], [2, 1]),
    record(12, ''),
    record(0x3c, ''),
    record(15, numbers([2, 1])),
    record(0x13, numbers([2, 0])),
    record(0x19, name),
    record(0x47, Buffer.from(name, 'utf16le')),
    record(0x1a, name),
    record(0x32, Buffer.from(name, 'utf16le')),
    record(0x1c, ''),
    record(0x48, ''),
    record(0x31, numbers([4, cache.length])),
    record(0x1e, numbers([4, 0])),
    record(0x2c, numbers([2, 0])),
    record(0x21, ''),
    record(0x2b, ''),
    record(0x10, ''),
  ])
  return compoundFile({
    _VBA_PROJECT: Buffer.from('cc61ffff000000', 'hex'),
    dir: pack(dir),
    [name]: Buffer.concat([cache, pack(Buffer.from(source))]),
  })
}

/** One chunk of the compression of MS-OVBA, eight literals behind each flag byte. */
function pack(data: Buffer): Buffer {
  const runs = Array.from({ length: Math.ceil(data.length / 8) }, (_, run) => [
    Buffer.alloc(1),
    data.subarray(run * 8, run * 8 + 8),
  ])
  const chunk = Buffer.concat(runs.flat())
  return Buffer.concat([Buffer.from([1]), numbers([2, 0xb000 | (chunk.length - 1)]), chunk])
}

type Place = { child?: number; right?: number; start: number; size: number }

function directoryEntry(name: string, type: number, { child = -1, right = -1, start, size }: Place): Buffer {
  const entry = Buffer.alloc(128)
  entry.write(name, 'utf16le')
  numbers([2, name.length * 2 + 2]).copy(entry, 64)
  entry[66] = type
  entry[67] = 1
  entry.writeInt32LE(-1, 68)
  entry.writeInt32LE(right, 72)
  entry.writeInt32LE(child, 76)
  numbers([4, start], [8, size]).copy(entry, 116)
  return entry
}

/** Packs one file with 7-Zip, as WebAssembly, so that the tests need no installed program. */
export async function sevenZip(type: string, data: Uint8Array | string, ...options: string[]): Promise<Buffer> {
  const wasmBinary = readFileSync(fileURLToPath(import.meta.resolve('7z-wasm/7zz.wasm'))).buffer as ArrayBuffer
  const program = await (start as unknown as SevenZipModuleFactory)({ wasmBinary, print: () => {}, printErr: () => {} })
  program.FS.writeFile('eicar.com', Buffer.from(data))
  program.callMain(['a', `-t${type}`, ...options, 'out', 'eicar.com'])
  const [name] = program.FS.readdir('.').filter((found) => found.startsWith('out'))
  if (name === undefined) throw new Error(`7-Zip made no ${type} with ${options.join(' ')}`)
  return Buffer.from(program.FS.readFile(name))
}

type Field = [bytes: 2 | 4 | 8, value: number]

/** Little endian. */
function numbers(...fields: Field[]): Buffer {
  return Buffer.concat(
    fields.map(([bytes, value]) => {
      const field = Buffer.alloc(bytes)
      if (bytes === 8) field.writeBigUInt64LE(BigInt(value))
      else field.writeUIntLE(value, 0, bytes)
      return field
    }),
  )
}
