import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { newZip } from '../support/archives.ts'
import { plainText, u32 } from './bytes.ts'
import type { Form } from './form.ts'
import { packFiles } from './samples.ts'
import { run } from './tools.ts'
import { newDescriptor, writeZip } from './zip-writer.ts'

const zip = { family: 'zip', expectation: 'opened' } as const

const pythonZip = `
import sys, zipfile
kind, name, source = sys.argv[1:]
method = getattr(zipfile, 'ZIP_' + kind)
with zipfile.ZipFile(name, 'w', method) as archive:
    archive.writestr('readme.txt', 'An ordinary text.')
    with archive.open(source, 'w', force_zip64=True) as target:
        target.write(open(source, 'rb').read())
`

const nest = (inner: Buffer, name: string, method: number) =>
  writeZip([
    { name: 'readme.txt', data: plainText },
    { name, data: inner, method },
  ])

/** Zip files as ordinary programs write them. */
export const zipForms: Form[] = [
  {
    ...zip,
    name: 'zip by 7-Zip, each method',
    needs: ['7z'],
    make: (payload, payloadName, workdir) =>
      packFiles(
        '7z',
        payload,
        payloadName,
        workdir,
        ['Copy', 'Deflate', 'Deflate64', 'BZip2', 'LZMA', 'PPMd'].map((method) => [
          `${method.toLowerCase()}.zip`,
          ['a', '-tzip', `-mm=${method}`, '-bd', `${method.toLowerCase()}.zip`, payloadName],
        ]),
      ),
  },
  {
    ...zip,
    name: 'zip by Info-ZIP, each method',
    needs: ['zip'],
    make: (payload, payloadName, workdir) =>
      packFiles('zip', payload, payloadName, workdir, [
        ['store.zip', ['-q0', 'store.zip', 'readme.txt', payloadName]],
        ['deflate.zip', ['-q9', 'deflate.zip', payloadName, 'readme.txt']],
        ['bzip2.zip', ['-q', '-Z', 'bzip2', 'bzip2.zip', payloadName]],
        ['zip64.zip', ['-q', '-fz', 'zip64.zip', payloadName]],
        ['descriptor.zip', ['-q', '-fd', 'descriptor.zip', payloadName, 'readme.txt']],
      ]),
  },
  {
    ...zip,
    name: 'zip written to a stream',
    needs: ['zip', 'bsdtar'],
    make(payload, payloadName, workdir) {
      writeFileSync(join(workdir, payloadName), payload)
      return [
        { name: 'from-stdin.zip', bytes: run('zip', ['-q', '-', '-'], { input: payload }) },
        { name: 'to-stdout.zip', bytes: run('zip', ['-q', '-', payloadName], { cwd: workdir }) },
        {
          name: 'zip64-to-stdout.zip',
          bytes: run('zip', ['-q', '-fz', '-', '-'], { input: payload }),
          // Python and unzip refuse these sizes.
          expectation: 'ambiguous',
        },
        {
          name: 'libarchive.zip',
          bytes: run('bsdtar', ['-cf', '-', '--format', 'zip', payloadName], { cwd: workdir }),
        },
      ]
    },
  },
  {
    ...zip,
    name: 'zip by Python, each method, with zip64',
    needs: ['python3'],
    make: (payload, payloadName, workdir) =>
      packFiles(
        'python3',
        payload,
        payloadName,
        workdir,
        ['STORED', 'DEFLATED', 'BZIP2', 'LZMA'].map((method) => [
          `${method.toLowerCase()}.zip`,
          ['-c', pythonZip, method, `${method.toLowerCase()}.zip`, payloadName],
        ]),
      ),
  },
  {
    ...zip,
    name: 'zip with the methods Zstandard and XZ',
    needs: ['zstd', 'xz'],
    make(payload, payloadName) {
      const newest = (method: number, packed: Buffer) =>
        writeZip([{ name: payloadName, data: payload, method, packed }])
      return [
        { name: 'zstd.zip', bytes: newest(93, run('zstd', ['-qc'], { input: payload })) },
        { name: 'xz.zip', bytes: newest(95, run('xz', ['-c'], { input: payload })) },
      ]
    },
  },
  {
    ...zip,
    name: 'zip with a data descriptor',
    needs: [],
    make(payload, payloadName) {
      const packed = deflateRawSync(payload)
      const hidden = { flags: 8, crc: 0, packedSize: 0, size: 0 }
      const described = (isSigned: boolean, data: Buffer) =>
        writeZip([
          {
            name: payloadName,
            data,
            packed,
            local: hidden,
            central: { flags: 8 },
            after: newDescriptor(data, packed.length, { isSigned }),
          },
          { name: 'readme.txt', data: plainText },
        ])
      return [
        { name: 'signed.zip', bytes: described(true, payload) },
        { name: 'unsigned.zip', bytes: described(false, payload) },
      ]
    },
  },
  {
    ...zip,
    name: 'zip in a stored zip',
    needs: [],
    make(payload, payloadName) {
      const inner = writeZip([{ name: payloadName, data: payload }])
      const stored = writeZip([{ name: payloadName, data: payload, method: 0 }])
      return [
        { name: 'stored.zip', bytes: nest(inner, 'inner.zip', 0) },
        { name: 'stored-twice.zip', bytes: nest(stored, 'inner.zip', 0) },
        { name: 'other-name.zip', bytes: nest(inner, 'notes.txt', 0) },
        { name: 'deflated.zip', bytes: nest(stored, 'inner.jar', 8) },
        { name: 'zip64.zip', bytes: newZip([{ name: 'inner.zip', data: inner }], { wide: true }) },
      ]
    },
  },
  {
    ...zip,
    name: 'zip that begins with the mark of a split archive',
    needs: [],
    make(payload, payloadName) {
      const body = writeZip([{ name: payloadName, data: payload }], { base: 4 })
      return [
        { name: 'spanned.zip', bytes: Buffer.concat([u32(0x0807_4b50), body]) },
        { name: 'one-part.zip', bytes: Buffer.concat([u32(0x3030_4b50), body]) },
      ]
    },
  },
  {
    ...zip,
    name: 'zip with unusual member names',
    needs: [],
    make: (payload) =>
      (
        [
          ['parent', '../../payload.com'],
          ['absolute', '/tmp/payload.com'],
          ['backslash', 'a\\b\\payload.com'],
          ['long', `${'directory/'.repeat(100)}payload.com`],
          ['utf-8', 'päyløad-文件.com'],
          ['no-extension', 'payload'],
        ] as const
      ).map(([name, member]) => ({
        name: `${name}.zip`,
        bytes: writeZip([
          { name: 'readme.txt', data: plainText },
          { name: member, data: payload, local: { flags: 0x800 }, central: { flags: 0x800 } },
        ]),
      })),
  },
]
