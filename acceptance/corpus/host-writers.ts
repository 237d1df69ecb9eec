import { readFileSync } from 'node:fs'
import { crc32, deflateSync, gzipSync } from 'node:zlib'
import { newPdf } from '../support/archives.ts'
import { longText, plainText, u16, u32, u64 } from './bytes.ts'
import { writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

const big32 = (value: number) => Buffer.from(u32(value)).reverse()

/** A tag with a title, as it stands before the frames of an MP3 file; `inside` fills a private field. */
export function newId3(inside: Buffer = Buffer.alloc(0)): Buffer {
  const toFrame = (name: string, content: Buffer) =>
    Buffer.concat([Buffer.from(name), big32(content.length), u16(0), content])
  const title = toFrame('TIT2', Buffer.from('\0A title'))
  const body = Buffer.concat([
    title,
    ...(inside.length === 0 ? [] : [toFrame('PRIV', Buffer.concat([Buffer.from('x\0'), inside]))]),
  ])
  const size = [21, 14, 7, 0].map((shift) => (body.length >>> shift) & 127)
  return Buffer.concat([Buffer.from('ID3\x03\0\0'), Buffer.of(...size), body])
}

/** Silent frames of an MP3 file: 128 kbit/s at 44.1 kHz, 417 bytes each. */
export const newMpegFrames = (count = 12): Buffer =>
  Buffer.concat(Array<Buffer>(count).fill(Buffer.concat([Buffer.of(0xff, 0xfb, 0x90, 0x64), Buffer.alloc(413)])))

/** A page of an Ogg stream with the header of Opus. */
function newOggPage(): Buffer {
  const packet = Buffer.concat([Buffer.from('OpusHead\x01\x02'), u16(312), u32(48_000), u16(0), Buffer.of(0)])
  const head = [Buffer.from('OggS\0\x02'), u64(0), u32(1), u32(0)]
  const tail = [Buffer.of(1, packet.length), packet]
  return Buffer.concat([...head, u32(oggChecksum(Buffer.concat([...head, u32(0), ...tail]))), ...tail])
}

function oggChecksum(bytes: Buffer): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 24
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000_0000 ? (crc << 1) ^ 0x04c1_1db7 : crc << 1
  }
  return crc >>> 0
}

/** The file header and the properties of a RealMedia file. */
const newRealMedia = () =>
  Buffer.concat([
    Buffer.from('.RMF'),
    big32(18),
    Buffer.alloc(2),
    big32(0),
    big32(2),
    Buffer.from('PROP'),
    big32(50),
    Buffer.alloc(42),
  ])

function newPng(): Buffer {
  const chunk = (name: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(name), data])
    return Buffer.concat([big32(data.length), body, big32(crc32(body))])
  }
  const head = Buffer.concat([big32(4), big32(4), Buffer.of(8, 0, 0, 0, 0)])
  const lines = deflateSync(Buffer.alloc(20))
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', lines), chunk('IEND', Buffer.alloc(0))])
}

const newGif = () =>
  Buffer.from('47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b', 'hex')

/** The smallest header that Windows and file(1) take for a program. */
function newPe(): Buffer {
  const stub = Buffer.alloc(1024)
  stub.write('MZ')
  stub.writeUInt32LE(0x80, 0x3c)
  stub.write('PE\0\0', 0x80)
  Buffer.concat([u16(0x8664), u16(1), u32(0), u32(0), u32(0), u16(0xf0), u16(0x22), u16(0x20b)]).copy(stub, 0x84)
  stub.write('.text', 0x188)
  Buffer.concat([u32(0x200), u32(0x1000), u32(0x200), u32(0x200)]).copy(stub, 0x190)
  return stub
}

const newSqlite = (workdir: string) => {
  const program =
    "import sqlite3; d = sqlite3.connect('a.db'); d.execute('create table t (a text)'); d.execute(\"insert into t values ('x')\"); d.commit()"
  run('python3', ['-c', program], { cwd: workdir })
  return readFileSync(`${workdir}/a.db`)
}

const newHtml = () =>
  Buffer.from(`<!DOCTYPE html>\n<html><head><title>A page</title></head><body>${plainText}</body></html>\n`)

/** Whole files of other formats, behind which an archive can stand. */
export const hosts: Record<string, (workdir: string) => Buffer> = {
  'an ID3 tag': () => newId3(),
  'MPEG frames': () => newMpegFrames(),
  'an ID3 tag and MPEG frames': () => Buffer.concat([newId3(), newMpegFrames()]),
  'an Ogg page': newOggPage,
  'a RealMedia header': newRealMedia,
  'an SQLite database': newSqlite,
  'a tar': () => writeTar({ name: 'readme.txt', data: plainText }),
  'a gzip': () => gzipSync(plainText),
  'a PNG picture': newPng,
  'a JPEG picture': () => readFileSync(new URL('../support/pictures/colours.jpg', import.meta.url)),
  'a GIF picture': newGif,
  'a Windows program': newPe,
  'a Linux program': () => readFileSync('/usr/bin/true'),
  'a PDF': () => newPdf(plainText),
  'an HTML page': newHtml,
  'a long text': () => longText,
}
