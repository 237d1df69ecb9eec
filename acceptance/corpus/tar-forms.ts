import { linkSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { longText, plainText } from './bytes.ts'
import type { Form } from './form.ts'
import { packFiles, toSamples } from './samples.ts'
import { type TarEntry, tarEnd, toBase256, writeEntry, writePax, writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

const tar = { family: 'tar', expectation: 'opened', needs: ['tar'] } as const
const text: TarEntry = { name: 'readme.txt', data: plainText }

/** Tar files as ordinary programs write them, and with legal but rare features. */
export const tarForms: Form[] = [
  {
    ...tar,
    name: 'tar by GNU tar, each format',
    make: (payload, payloadName, workdir) =>
      packFiles(
        'tar',
        payload,
        payloadName,
        workdir,
        ['v7', 'oldgnu', 'gnu', 'ustar', 'posix'].map((format) => [
          `${format}.tar`,
          ['-cf', `${format}.tar`, `--format=${format}`, 'readme.txt', payloadName],
        ]),
      ),
  },
  {
    ...tar,
    name: 'tar by libarchive, each format',
    needs: ['bsdtar'],
    make: (payload, payloadName, workdir) =>
      packFiles(
        'bsdtar',
        payload,
        payloadName,
        workdir,
        ['v7tar', 'gnutar', 'ustar', 'pax', 'paxr'].map((format) => [
          `${format}.tar`,
          ['-cf', `${format}.tar`, `--format=${format}`, payloadName, 'readme.txt'],
        ]),
      ),
  },
  {
    ...tar,
    name: 'tar with long names and links',
    make(payload, payloadName, workdir) {
      const deep = 'directory-of-some-length/'.repeat(8)
      mkdirSync(join(workdir, deep), { recursive: true })
      writeFileSync(join(workdir, deep, payloadName), payload)
      writeFileSync(join(workdir, payloadName), payload)
      linkSync(join(workdir, payloadName), join(workdir, 'link.com'))
      const pack = (...args: string[]) => run('tar', ['-cf', '-', ...args], { cwd: workdir })
      return toSamples('tar', {
        gnu: pack('--format=gnu', deep + payloadName),
        posix: pack('--format=posix', deep + payloadName),
        ustar: pack('--format=ustar', deep + payloadName),
        'hard-link': pack('link.com', payloadName),
        'full-name-field': writeTar({ name: 'n'.repeat(100), data: payload }),
        'parent-name': writeTar({ name: '../../payload.com', data: payload }),
      })
    },
  },
  {
    ...tar,
    name: 'tar with pax sizes',
    expectation: 'ambiguous',
    make(payload, name) {
      const bad: TarEntry = { name, data: payload }
      const hidden = writeEntry(bad)
      return toSamples('tar', {
        'size-in-pax-only': writeTar(text, writePax({ size: payload.length }), { ...bad, size: 0 }),
        'pax-says-zero': writeTar(text, writePax({ size: 0 }), bad),
        // Readers of the first size see one long file, readers of the second an empty file and the payload after it.
        'pax-covers-payload': writeTar(writePax({ size: hidden.length }), { name: 'a.txt', data: hidden, size: 0 }),
        'header-covers-payload': writeTar(writePax({ size: 0 }), { name: 'a.txt', data: hidden }),
        'global-size': writeTar(writePax({ size: payload.length }, 'g'), { ...bad, size: 0 }),
        'two-sizes': writeTar(
          writePax([
            ['size', '0'],
            ['size', String(payload.length)],
          ]),
          { ...bad, size: 0 },
        ),
        'old-pax-type': writeTar(writePax({ size: payload.length }, 'X'), { ...bad, size: 0 }),
      })
    },
  },
  {
    ...tar,
    name: 'tar with binary and broken sizes',
    expectation: 'ambiguous',
    make(payload, name) {
      const bad: TarEntry = { name, data: payload }
      const field = (content: string) => Buffer.from(content.padEnd(12, '\0'), 'latin1')
      const octal = payload.length.toString(8)
      return toSamples('tar', {
        'base-256': writeTar(text, { ...bad, size: toBase256(payload.length) }),
        'negative-before': writeTar({ ...text, data: Buffer.alloc(0), size: toBase256(-512) }, bad),
        'negative-of-payload': writeTar(text, { ...bad, size: toBase256(-payload.length) }),
        'huge-before': writeTar({ ...text, data: Buffer.alloc(0), size: toBase256(2 ** 52) }, bad),
        blanks: writeTar(text, { ...bad, size: field(`${octal.padStart(11, ' ')} `) }),
        'no-end': writeTar(text, { ...bad, size: field(octal.padStart(12, '0')) }),
        'letters-before': writeTar({ ...text, data: Buffer.alloc(0), size: field('zzzz') }, bad),
        'minus-sign': writeTar({ ...text, data: Buffer.alloc(0), size: field('-0000001000') }, bad),
        'short-field': writeTar(text, { ...bad, size: field(octal) }),
      })
    },
  },
  {
    ...tar,
    name: 'tar with sparse members',
    make(payload, name) {
      const length = payload.length
      const map = Buffer.alloc(512)
      map.write(`1\n0\n${length}\n`)
      const octal = (value: number) => Buffer.from(`${value.toString(8).padStart(11, '0')}\0`)
      const oldSparse: TarEntry = {
        name,
        data: payload,
        type: 'S',
        magic: 'ustar  \0',
        change: [
          [386, octal(0)],
          [398, octal(length)],
          [483, octal(length)],
        ],
      }
      const size = { 'GNU.sparse.size': length, 'GNU.sparse.numblocks': 1 }
      const realSize = { 'GNU.sparse.name': name, 'GNU.sparse.realsize': length }
      const bad: TarEntry = { name: 'GNUSparseFile.1/x', data: payload }
      return toSamples('tar', {
        old: writeTar(text, oldSparse),
        '0.0': writeTar(writePax({ ...size, 'GNU.sparse.offset': 0, 'GNU.sparse.numbytes': length }), bad),
        '0.1': writeTar(writePax({ ...size, 'GNU.sparse.map': `0,${length}` }), bad),
        '1.0': writeTar(writePax({ 'GNU.sparse.major': 1, 'GNU.sparse.minor': 0, ...realSize }), {
          ...bad,
          data: Buffer.concat([map, payload]),
        }),
      })
    },
  },
  {
    ...tar,
    name: 'tar with zero blocks in between',
    expectation: 'ambiguous',
    make(payload, name, workdir) {
      const bad: TarEntry = { name, data: payload }
      const plain = writeTar(text)
      const [first] = packFiles('tar', payload, name, workdir, [['a.tar', ['-cf', 'a.tar', 'readme.txt']]])
      return toSamples('tar', {
        'one-block': Buffer.concat([writeEntry(text), Buffer.alloc(512), writeTar(bad)]),
        'two-blocks': Buffer.concat([plain, writeTar(bad)]),
        'gnu-record': Buffer.concat([first?.bytes ?? plain, writeTar(bad)]),
        'many-blocks': Buffer.concat([plain, Buffer.alloc(102_400), writeTar(bad)]),
        'payload-first': Buffer.concat([writeTar(bad), plain]),
        'zeros-first': Buffer.concat([tarEnd, writeTar(bad)]),
        'text-between': Buffer.concat([plain, longText.subarray(0, 512 * 20), writeTar(bad)]),
      })
    },
  },
  {
    ...tar,
    name: 'tar with odd headers',
    expectation: 'ambiguous',
    make(payload, name) {
      const bad: TarEntry = { name, data: payload }
      return toSamples('tar', {
        'signed-checksum': writeTar(text, { ...bad, name: 'päyload.com', checksum: 'signed' }),
        'wrong-checksum': writeTar(text, { ...bad, checksum: 'wrong' }, { ...text, name: 'b.txt' }),
        'wrong-checksum-first': writeTar({ ...text, checksum: 'wrong' }, bad),
        'blank-checksum': writeTar(text, { ...bad, checksum: 'blank' }),
        'no-magic': writeTar({ ...text, magic: '' }, { ...bad, magic: '' }),
        'odd-magic': writeTar({ ...text, magic: 'USTAR\x00xx' }, { ...bad, magic: 'abcdefgh' }),
        'no-end': Buffer.concat([writeEntry(text), writeEntry(bad)]),
        'half-a-block-before': Buffer.concat([Buffer.alloc(256), writeTar(bad)]),
      })
    },
  },
  {
    ...tar,
    name: 'tar with data on unusual entry types',
    expectation: 'ambiguous',
    make: (payload, name) =>
      toSamples(
        'tar',
        Object.fromEntries(
          Array.from('\x00123567ADEIMNSVXZa9LKxg').map((type) => [
            `type-${type === '\0' ? 'nul' : /[a-z]/.test(type) ? `small-${type}` : type}`,
            writeTar(text, { name, data: payload, type, linkName: /[12]/.test(type) ? 'nowhere' : '' }),
          ]),
        ),
      ),
  },
  {
    ...tar,
    name: 'tar with an entry in the data of an unusual entry',
    expectation: 'ambiguous',
    make(payload, name) {
      const hidden = writeEntry({ name, data: payload })
      return toSamples(
        'tar',
        Object.fromEntries(
          Array.from('123456V').map((type) => [
            `type-${type}`,
            writeTar(text, { name: 'b', data: hidden, type, linkName: /[12]/.test(type) ? 'nowhere' : '' }),
          ]),
        ),
      )
    },
  },
]
