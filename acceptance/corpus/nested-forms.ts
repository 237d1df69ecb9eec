import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { newRar4, newZip } from '../support/archives.ts'
import { plainText } from './bytes.ts'
import type { Form } from './form.ts'
import { newAsar, newLha, newWarc } from './other-writers.ts'
import { packFiles, toSamples, writeFiles } from './samples.ts'
import { writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

type Wrap = (bytes: Buffer, name: string) => { bytes: Buffer; name: string }

const wraps = {
  zip: (bytes, name) => ({ bytes: newZip([{ name, data: bytes }]), name: `${name}.zip` }),
  tar: (bytes, name) => ({ bytes: writeTar({ name, data: bytes }), name: `${name}.tar` }),
  gz: (bytes, name) => ({ bytes: gzipSync(bytes), name: `${name}.gz` }),
  zst: (bytes, name) => ({ bytes: zstdCompressSync(bytes), name: `${name}.zst` }),
  xz: (bytes, name) => ({ bytes: run('xz', ['-c'], { input: bytes }), name: `${name}.xz` }),
  bz2: (bytes, name) => ({ bytes: run('bzip2', ['-c'], { input: bytes }), name: `${name}.bz2` }),
} satisfies Record<string, Wrap>

type Kind = keyof typeof wraps

/** Wraps a file several times; the last kind is the outermost. */
function nest(payload: Buffer, name: string, kinds: Kind[]): Buffer {
  let file = { bytes: payload, name }
  for (const kind of kinds) file = wraps[kind](file.bytes, file.name)
  return file.bytes
}

/** Cuts a file at several places that lie within its content. */
const cut = (bytes: Buffer, ...shares: number[]) =>
  shares.map((share) => bytes.subarray(0, Math.floor(bytes.length * share)))

/** Nested containers, and containers that end too early. */
export const nestedForms: Form[] = [
  {
    name: 'the same container at depth 2 to 6',
    family: 'nested',
    expectation: 'opened',
    needs: ['xz', 'bzip2'],
    make: (payload, name) =>
      (['zip', 'tar', 'gz', 'xz', 'bz2', 'zst'] as const).flatMap((kind) =>
        [2, 4, 6].map((depth) => ({
          name: `depth-${depth}.${kind}`,
          bytes: nest(payload, name, Array<Kind>(depth).fill(kind)),
        })),
      ),
  },
  {
    name: 'different containers at depth 2 to 6',
    family: 'nested',
    expectation: 'opened',
    needs: ['xz', 'bzip2'],
    make: (payload, name) =>
      (
        [
          ['tar', 'zip'],
          ['zip', 'tar', 'gz'],
          ['gz', 'zip', 'xz'],
          ['tar', 'bz2', 'zip', 'gz'],
          ['zip', 'zst', 'tar', 'xz', 'zip'],
          ['gz', 'tar', 'xz', 'zip', 'tar', 'gz'],
        ] as Kind[][]
      ).map((kinds) => ({ name: `${kinds.join('-in-')}.${kinds.at(-1)}`, bytes: nest(payload, name, kinds) })),
  },
  {
    name: 'containers that few programs know, inside a zip',
    family: 'nested',
    expectation: 'ambiguous',
    needs: ['compress', 'bsdtar', 'lz4', 'lzip'],
    extractors: ['unzip and others'],
    make(payload, name, workdir) {
      writeFiles(payload, name, workdir)
      const pack = (program: string, ...args: string[]) => run(program, args, { input: payload })
      const bsdtar = (format: string) => run('bsdtar', ['-cf', '-', `--format=${format}`, name], { cwd: workdir })
      const inner = {
        'a.Z': pack('compress', '-cf', '-b', '9'),
        'b.Z': pack('compress', '-cf', '-b', '11'),
        'a.lz4': pack('lz4', '-qc'),
        'a.lz': pack('lzip', '-c'),
        'a.asar': newAsar({ [name]: payload }),
        'a.warc': newWarc('resource', payload),
        'a.lzh': newLha(payload, name, 1),
        'a.xar': bsdtar('xar'),
        'a.cpio': bsdtar('cpio'),
        'a.a': bsdtar('ar'),
        'a.rar': newRar4({ name, data: payload }),
      }
      return Object.entries(inner).map(([file, bytes]) => ({
        name: `${file}.zip`,
        bytes: newZip([{ name: file, data: bytes }]),
      }))
    },
  },
  {
    name: 'compressed streams that end too early',
    family: 'truncated',
    expectation: 'damaged',
    needs: ['gzip', 'bzip2', 'xz', 'zstd', 'lz4', 'lzip', 'lzop'],
    make(payload) {
      const streams = {
        gz: run('gzip', ['-c'], { input: payload }),
        bz2: run('bzip2', ['-c'], { input: payload }),
        xz: run('xz', ['-c'], { input: payload }),
        lzma: run('xz', ['--format=lzma', '-c'], { input: payload }),
        zst: run('zstd', ['-qc'], { input: payload }),
        lz4: run('lz4', ['-qc'], { input: payload }),
        lz: run('lzip', ['-c'], { input: payload }),
        lzo: run('lzop', ['-c'], { input: payload }),
      }
      return Object.entries(streams).flatMap(([kind, bytes]) =>
        cut(bytes, 0.6, 0.97).map((part, n) => ({ name: `${n === 0 ? 'middle' : 'end'}.${kind}`, bytes: part })),
      )
    },
  },
  {
    name: 'archives that end too early',
    family: 'truncated',
    expectation: 'damaged',
    needs: ['7z', 'cpio', 'ar', 'gcab', 'arj'],
    make(payload, name, workdir) {
      writeFiles(payload, name, workdir)
      const archives = packFiles('7z', payload, name, workdir, [['a.7z', ['a', '-bd', 'a.7z', name]]])
      run('arj', ['a', '-y', '-m1', 'a.arj', name], { cwd: workdir })
      run('gcab', ['-cz', 'a.cab', name], { cwd: workdir })
      run('ar', ['rc', 'a.a', 'readme.txt', name], { cwd: workdir })
      const files = Object.fromEntries(
        ['a.arj', 'a.cab', 'a.a'].map((file) => [file, readFileSync(join(workdir, file))]),
      )
      const members = [
        { name: 'readme.txt', data: plainText },
        { name, data: payload },
      ]
      const tar = writeTar(...members)
      const all: Record<string, Buffer> = {
        'a.7z': archives[0]?.bytes ?? Buffer.alloc(0),
        ...files,
        'a.zip': newZip(members),
        'a.rar': newRar4({ name, data: payload }),
        'a.cpio': run('cpio', ['-o', '--quiet', '-H', 'newc'], {
          cwd: workdir,
          input: Buffer.from(`${name}\n`),
        }).subarray(0, 250),
        // The end of a tar is padding: the cut must lie within the data of the last member.
        'a.tar': tar.subarray(0, 512 * 3 + 60),
        'a.tar.gz': gzipSync(tar),
      }
      return Object.entries(all).map(([file, bytes]) => ({
        name: file,
        bytes: cut(bytes, file === 'a.tar' ? 1 : 0.8)[0] ?? bytes,
      }))
    },
  },
  {
    name: 'archives in a zip that end too early',
    family: 'truncated',
    expectation: 'damaged',
    needs: ['xz'],
    make(payload, name) {
      const tar = writeTar({ name: 'readme.txt', data: plainText }, { name, data: payload }).subarray(0, 512 * 3 + 60)
      const inside = (file: string, bytes: Buffer) => newZip([{ name: file, data: bytes }])
      return toSamples('zip', {
        tar: inside('a.tar', tar),
        gz: inside('a.gz', cut(gzipSync(payload), 0.7)[0] ?? payload),
        xz: inside('a.xz', cut(run('xz', ['-c'], { input: payload }), 0.7)[0] ?? payload),
        zip: inside('a.zip', cut(newZip([{ name, data: payload }]), 0.7)[0] ?? payload),
      })
    },
  },
]
