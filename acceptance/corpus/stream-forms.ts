import { crc32, deflateRawSync } from 'node:zlib'
import { newZip } from '../support/archives.ts'
import { plainText, u16, u32, u64 } from './bytes.ts'
import type { Form } from './form.ts'
import { packFiles, toSamples } from './samples.ts'
import { writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

const pack =
  (program: string, ...args: string[]) =>
  (input: Buffer) =>
    run(program, args, { input })

/** A gzip member with the given header fields, as RFC 1952 defines them. */
function newGzip(data: Buffer, flags: number, { extra = Buffer.from('ab\x02\x00xy') } = {}): Buffer {
  const head = Buffer.concat([
    Buffer.of(0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 2, 3),
    ...(flags & 4 ? [u16(extra.length), extra] : []),
    ...(flags & 8 ? [Buffer.from('payload.com\0')] : []),
    ...(flags & 16 ? [Buffer.from('A comment.\0')] : []),
  ])
  const check = flags & 2 ? u16(crc32(head)) : Buffer.alloc(0)
  return Buffer.concat([head, check, deflateRawSync(data), u32(crc32(data)), u32(data.length)])
}

/** Two halves that give the payload together. */
const halves = (payload: Buffer) => [payload.subarray(0, 30), payload.subarray(30)]
const nothing = Buffer.alloc(0)

/** Compressed streams of gzip, bzip2 and the LZMA family. */
export const streamForms: Form[] = [
  {
    name: 'gzip with header fields',
    family: 'gzip',
    expectation: 'opened',
    needs: [],
    extractors: ['gzip'],
    make: (payload, name) =>
      toSamples('gz', {
        none: newGzip(payload, 0),
        text: newGzip(payload, 1),
        'header-checksum': newGzip(payload, 2),
        extra: newGzip(payload, 4),
        name: newGzip(payload, 8),
        comment: newGzip(payload, 16),
        all: newGzip(payload, 31),
        'all-without-checksum': newGzip(payload, 29),
        'all-with-tar': newGzip(writeTar({ name, data: payload }), 31),
        'large-extra': newGzip(payload, 4, {
          extra: Buffer.concat([Buffer.from('ab'), u16(60_000), Buffer.alloc(60_000)]),
        }),
      }),
  },
  {
    name: 'gzip with several members',
    family: 'gzip',
    expectation: 'opened',
    needs: ['gzip'],
    extractors: ['gzip'],
    make(payload, name) {
      const gzip = pack('gzip', '-9nc')
      const zip = newZip([{ name, data: payload }])
      return toSamples('gz', {
        one: gzip(payload),
        'two-halves': Buffer.concat(halves(payload).map(gzip)),
        'empty-first': Buffer.concat([gzip(nothing), gzip(payload)]),
        'empty-last': Buffer.concat([gzip(payload), gzip(nothing)]),
        'many-empty-first': Buffer.concat([...Array<Buffer>(50).fill(gzip(nothing)), gzip(payload)]),
        'tar-in-two-members': Buffer.concat(halves(writeTar({ name, data: payload })).map(gzip)),
        'zip-in-two-members': Buffer.concat(halves(zip).map(gzip)),
      }).map((sample) =>
        // Some programs read the first member alone, which is a zip without its end.
        sample.name.startsWith('zip') ? { ...sample, expectation: 'ambiguous' } : sample,
      )
    },
  },
  {
    name: 'gzip with bytes between or after members',
    family: 'gzip',
    expectation: 'ambiguous',
    needs: ['gzip'],
    extractors: ['gzip'],
    make(payload, name) {
      const gzip = pack('gzip', '-9nc')
      const [first = nothing, second = nothing] = halves(payload).map(gzip)
      const whole = gzip(payload)
      const wrong = Buffer.from(whole)
      wrong.writeUInt32LE(1, wrong.length - 8)
      const text = gzip(plainText)
      const zip = newZip([{ name, data: payload }])
      return toSamples('gz', {
        'zeros-between': Buffer.concat([first, Buffer.alloc(512), second]),
        'zeros-after': Buffer.concat([whole, Buffer.alloc(512)]),
        'one-zero-between': Buffer.concat([first, Buffer.alloc(1), second]),
        'text-after': Buffer.concat([whole, plainText]),
        'zip-after': Buffer.concat([text, zip]),
        'zip-in-second-member': Buffer.concat([text, gzip(zip)]),
        'zip-in-second-member-after-zeros': Buffer.concat([text, Buffer.alloc(100), gzip(zip)]),
        'zip-in-extra-field': newGzip(plainText, 4, {
          extra: Buffer.concat([Buffer.from('zz'), u16(zip.length), zip]),
        }),
        'reserved-flag': newGzip(payload, 0x20),
        'wrong-checksum': wrong,
      })
    },
  },
  {
    name: 'bzip2 streams',
    family: 'bzip2',
    expectation: 'opened',
    needs: ['bzip2'],
    extractors: ['bzip2'],
    make(payload, name) {
      const bzip2 = pack('bzip2', '-9c')
      return toSamples('bz2', {
        one: bzip2(payload),
        smallest: pack('bzip2', '-1c')(payload),
        'two-halves': Buffer.concat(halves(payload).map(bzip2)),
        'empty-first': Buffer.concat([bzip2(nothing), bzip2(payload)]),
        'tar-in-two-streams': Buffer.concat(halves(writeTar({ name, data: payload })).map(bzip2)),
        'text-after': Buffer.concat([bzip2(payload), plainText]),
        'zeros-after': Buffer.concat([bzip2(payload), Buffer.alloc(512)]),
      }).map((sample) => (/after/.test(sample.name) ? { ...sample, expectation: 'ambiguous' } : sample))
    },
  },
  {
    name: 'xz streams',
    family: 'xz',
    expectation: 'opened',
    needs: ['xz'],
    extractors: ['xz'],
    make(payload, name) {
      const xz = pack('xz', '-c')
      const tar = writeTar({ name, data: payload })
      return toSamples('xz', {
        one: xz(payload),
        'two-halves': Buffer.concat(halves(payload).map(xz)),
        'empty-first': Buffer.concat([xz(nothing), xz(payload)]),
        'padding-between': Buffer.concat([
          xz(halves(payload)[0] ?? nothing),
          Buffer.alloc(64),
          xz(halves(payload)[1] ?? nothing),
        ]),
        'padding-after': Buffer.concat([xz(payload), Buffer.alloc(1024)]),
        blocks: pack('xz', '-c', '--block-size=50')(payload),
        'no-check': pack('xz', '-c', '--check=none')(payload),
        sha256: pack('xz', '-c', '--check=sha256')(payload),
        delta: pack('xz', '-c', '--delta=dist=4', '--lzma2')(payload),
        x86: pack('xz', '-c', '--x86', '--lzma2')(tar),
        arm: pack('xz', '-c', '--arm', '--lzma2=dict=4KiB,lc=0,lp=4,pb=0')(tar),
      })
    },
  },
  {
    name: 'xz with bytes after it',
    family: 'xz',
    expectation: 'ambiguous',
    needs: ['xz'],
    extractors: ['xz'],
    make(payload) {
      const xz = pack('xz', '-c')
      return toSamples('xz', {
        'three-zeros': Buffer.concat([xz(payload), Buffer.alloc(3)]),
        text: Buffer.concat([xz(payload), plainText]),
      })
    },
  },
  {
    name: 'lzma with all values of lc, lp and pb',
    family: 'lzma',
    expectation: 'opened',
    needs: ['7z'],
    extractors: ['lzma'],
    make(payload, name, workdir) {
      // Each value of lc, lp and pb occurs, with the extremes together.
      const settings = ['000', '004', '041', '800', '844', '440', '302', '113', '521', '634', '723', '232', '403'].map(
        (digits) => Array.from(digits, Number),
      )
      return packFiles(
        '7z',
        payload,
        name,
        workdir,
        settings.map(([lc, lp, pb]) => {
          const archive = `lc${lc}-lp${lp}-pb${pb}.7z`
          return [archive, ['a', '-bd', '-mhc=off', `-m0=LZMA:d=64k:lc=${lc}:lp=${lp}:pb=${pb}`, archive, name]]
        }),
      ).map(({ name: archive, bytes }, n) => {
        const [lc = 0, lp = 0, pb = 0] = settings[n] ?? []
        // The raw stream stands between the first 32 bytes of a 7z and its header.
        const raw = bytes.subarray(32, 32 + Number(bytes.readBigUInt64LE(12)))
        const head = Buffer.concat([Buffer.of((pb * 5 + lp) * 9 + lc), u32(65_536), u64(payload.length)])
        return { name: archive.replace('.7z', '.lzma'), bytes: Buffer.concat([head, raw]) }
      })
    },
  },
  {
    name: 'lzma with odd dictionaries and unknown size',
    family: 'lzma',
    expectation: 'opened',
    needs: ['xz'],
    extractors: ['lzma'],
    make(payload, name) {
      const lzma = pack('xz', '--format=lzma', '-c')
      const withDictionary = (size: number) => {
        const bytes = Buffer.from(lzma(payload))
        bytes.writeUInt32LE(size, 1)
        return bytes
      }
      const known = Buffer.from(lzma(payload))
      known.writeBigUInt64LE(BigInt(payload.length), 5)
      return toSamples('lzma', {
        usual: lzma(payload),
        tar: lzma(writeTar({ name, data: payload })),
        '4-kib': pack('xz', '--format=lzma', '--lzma1=dict=4KiB', '-c')(payload),
        '96-kib': pack('xz', '--format=lzma', '--lzma1=dict=96KiB', '-c')(payload),
        '1-mib-and-a-half': withDictionary(3 * 2 ** 19),
        'odd-number': withDictionary(0x0001_2345),
        zero: withDictionary(0),
        largest: withDictionary(0xffff_ffff),
        'known-size-and-end-mark': known,
      }).map((sample) =>
        /odd|zero|largest|end-mark/.test(sample.name) ? { ...sample, expectation: 'ambiguous' } : sample,
      )
    },
  },
  {
    name: 'tar in each compression',
    family: 'tar',
    expectation: 'opened',
    needs: ['tar', 'gzip', 'bzip2', 'xz', 'zstd', 'compress', 'lzip', 'lzop'],
    make(payload, name, workdir) {
      return packFiles(
        'tar',
        payload,
        name,
        workdir,
        ['gz', 'bz2', 'xz', 'lzma', 'zst', 'Z', 'lz', 'lzo'].map((extension) => [
          `a.tar.${extension}`,
          ['-caf', `a.tar.${extension}`, 'readme.txt', name],
        ]),
      ).map((sample) => (/\.(lz|lzo)$/.test(sample.name) ? { ...sample, expectation: 'ambiguous' } : sample))
    },
  },
  {
    name: 'compress, 9 to 16 bits',
    family: 'compress',
    expectation: 'opened',
    needs: ['compress'],
    extractors: ['compress', 'gzip'],
    // A table of 9 bits is soon full, and no program reads what this one writes then: so it gets less to write.
    make: (payload, name) =>
      [9, 10, 11, 12, 13, 14, 15, 16].flatMap((bits) =>
        toSamples('Z', {
          [`${bits}-bits`]: pack('compress', '-cf', '-b', String(bits))(payload),
          [`${bits}-bits-tar`]: pack(
            'compress',
            '-cf',
            '-b',
            String(bits),
          )(writeTar(...(bits === 9 ? [] : [{ name: 'filler.bin', data: newFiller() }]), { name, data: payload })),
        }),
      ),
  },
]

/** Bytes with enough variety to fill the code table of compress, the same on each call. */
function newFiller(): Buffer {
  let state = 1
  return Buffer.from(
    Array.from({ length: 20_000 }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return state >>> 28
    }),
  )
}
