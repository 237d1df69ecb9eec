import { deflateSync } from 'node:zlib'
import { plainText, u64be } from './bytes.ts'
import type { Form } from './form.ts'
import { breakLines } from './mail-writer.ts'
import { toSamples } from './samples.ts'
import { writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

const pack =
  (program: string, ...args: string[]) =>
  (input: Buffer) =>
    run(program, args, { input })
const gzip = pack('gzip', '-9nc')
const xz = pack('xz', '-c')

/** The same stream with the signature that gzip had before version 0.6. */
function toOldGzip(stream: Buffer): Buffer {
  const old = Buffer.from(stream)
  old[1] = 0x9e
  return old
}

/** Programs of macOS compress each 16 MB of a package alone. A chunk that XZ does not make smaller stays plain. */
const newPbzx = (...chunks: Buffer[]) =>
  Buffer.concat([
    Buffer.from('pbzx'),
    u64be(2 ** 24),
    ...chunks.flatMap((chunk, at) => [u64be(at < chunks.length - 1 ? 2 ** 24 : 1000), u64be(chunk.length), chunk]),
  ])

/** Lines of at most 16 bytes, each with its length, its address, its kind and what makes their sum zero. */
function toIntelHex(bytes: Buffer, lineEnd: string): Buffer {
  const starts = Array.from({ length: Math.ceil(bytes.length / 16) }, (_, line) => 16 * line)
  const records = starts.map((at) => {
    const data = bytes.subarray(at, at + 16)
    return Buffer.from([data.length, at >> 8, at & 255, 0, ...data])
  })
  const lines = [...records, Buffer.from([0, 0, 0, 1])].map((record) => {
    const sum = record.reduce((total, byte) => total + byte, 0)
    return `:${Buffer.concat([record, Buffer.from([-sum & 255])])
      .toString('hex')
      .toUpperCase()}${lineEnd}`
  })
  return Buffer.from(lines.join(''))
}

const toBase64 = (bytes: Buffer, width = 76) => Buffer.from(breakLines(bytes.toString('base64'), width))

/** Compressed streams that few programs write and some still read. */
export const oddStreamForms: Form[] = [
  {
    name: 'gzip with the signature of version 0.5',
    family: 'gzip',
    expectation: 'opened',
    needs: ['gzip'],
    extractors: ['gzip'],
    make: (payload, name) =>
      toSamples('gz', {
        one: toOldGzip(gzip(payload)),
        'empty-first': Buffer.concat([gzip(Buffer.alloc(0)), toOldGzip(gzip(payload))]),
        'two-halves': Buffer.concat([toOldGzip(gzip(payload.subarray(0, 30))), gzip(payload.subarray(30))]),
        tar: toOldGzip(gzip(writeTar({ name, data: payload }))),
      }),
  },
  {
    name: 'gzip that another stream continues',
    family: 'gzip',
    expectation: 'ambiguous',
    needs: ['gzip', 'compress', 'zstd', 'xz', 'lz4'],
    extractors: ['gzip', 'zstd'],
    make(payload) {
      const others: [string, (input: Buffer) => Buffer][] = [
        ['compress', pack('compress', '-cf')],
        ['zstd', pack('zstd', '-qc')],
        ['xz', xz],
        ['lzma', pack('xz', '--format=lzma', '-c')],
        ['lz4', pack('lz4', '-qc')],
      ]
      const toBoth = (other: (input: Buffer) => Buffer) =>
        Buffer.concat([gzip(payload.subarray(0, 30)), other(payload.subarray(30))])
      return toSamples('gz', Object.fromEntries(others.map(([name, other]) => [name, toBoth(other)])))
    },
  },
  {
    name: 'pbzx',
    family: 'pbzx',
    // No program of Debian reads it.
    expectation: 'ambiguous',
    needs: ['xz'],
    make(payload, name) {
      const tar = writeTar({ name: 'a.txt', data: plainText }, { name, data: payload })
      return toSamples('pbzx', {
        one: newPbzx(xz(payload)),
        'two-halves': newPbzx(xz(payload.subarray(0, 30)), xz(payload.subarray(30))),
        plain: newPbzx(payload),
        'plain-first': newPbzx(payload.subarray(0, 30), xz(payload.subarray(30))),
        'tar-in-chunks': newPbzx(xz(tar.subarray(0, 300)), tar.subarray(300, 1500), xz(tar.subarray(1500))),
      })
    },
  },
  {
    name: 'base64 alone',
    family: 'base64',
    expectation: 'ambiguous',
    needs: ['compress'],
    extractors: ['base64', 'base64 twice', 'base64 and others'],
    make: (payload, name) =>
      toSamples('b64', {
        ...Object.fromEntries(
          [1, 3, 16, 30, 31, 32, 60].map((width) => [`lines-of-${width}`, toBase64(payload, width)]),
        ),
        'short-first-line': Buffer.from(
          toBase64(payload)
            .toString()
            .replace(/^.{10}/, '$&\n'),
        ),
        twice: toBase64(toBase64(payload)),
        tar: toBase64(writeTar({ name, data: payload })),
        compress: toBase64(pack('compress', '-cf')(payload)),
        zlib: toBase64(deflateSync(payload)),
        mail: toBase64(
          Buffer.concat([Buffer.from('From: a@b.c\nContent-Transfer-Encoding: base64\n\n'), toBase64(payload)]),
        ),
      }),
  },
  {
    name: 'Intel HEX',
    family: 'intel-hex',
    expectation: 'opened',
    needs: [],
    make: (payload, name) =>
      toSamples('hex', {
        'carriage-returns': toIntelHex(payload, '\r\n'),
        lines: toIntelHex(payload, '\n'),
        tar: toIntelHex(writeTar({ name, data: payload }), '\r\n'),
      }),
  },
]
