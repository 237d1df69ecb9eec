import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { newZip } from '../support/archives.ts'
import { plainText } from './bytes.ts'
import type { Form, Sample } from './form.ts'
import { toSamples } from './samples.ts'
import { writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

/** Writes a directory `root` with the payload and a harmless file. */
function writeRoot(payload: Buffer, name: string, workdir: string) {
  mkdirSync(join(workdir, 'root/folder'), { recursive: true })
  writeFileSync(join(workdir, 'root', name), payload)
  writeFileSync(join(workdir, 'root/folder/readme.txt'), plainText)
}

/** Makes disc images with genisoimage, one for each list of options. */
function makeDiscs(payload: Buffer, name: string, workdir: string, discs: Record<string, string[]>): Sample[] {
  writeRoot(payload, name, workdir)
  return toSamples(
    'iso',
    Object.fromEntries(
      Object.entries(discs).map(([disc, options]) => [
        disc,
        run('genisoimage', ['-quiet', '-no-pad', ...options, 'root'], { cwd: workdir }),
      ]),
    ),
  )
}

/** Images of discs and of Windows installations. */
export const imageForms: Form[] = [
  {
    name: 'disc images, each directory tree',
    family: 'iso',
    expectation: 'opened',
    needs: ['genisoimage'],
    make: (payload, name, workdir) =>
      makeDiscs(payload, name, workdir, {
        plain: [],
        joliet: ['-J'],
        'rock-ridge': ['-R'],
        all: ['-J', '-R', '-udf'],
        'level-4': ['-iso-level', '4'],
        'long-names': ['-l', '-allow-lowercase', '-relaxed-filenames'],
      }),
  },
  {
    name: 'disc images with a file in one tree only',
    family: 'iso',
    expectation: 'opened',
    extractors: ['bsdtar without Joliet'],
    needs: ['genisoimage'],
    make: (payload, name, workdir) =>
      makeDiscs(payload, name, workdir, {
        'joliet-only': ['-J', '-hide', name],
        'iso-only': ['-J', '-hide-joliet', name],
        'udf-only': ['-udf', '-hide', name],
        'udf-and-joliet-without-payload': ['-udf', '-J', '-hide-joliet', name],
        'hidden-flag': ['-J', '-R', '-hidden', name],
      }),
  },
  {
    name: 'disc images inside other containers',
    family: 'iso',
    expectation: 'opened',
    needs: ['genisoimage'],
    make(payload, name, workdir) {
      const discs = makeDiscs(payload, name, workdir, { iso: ['-J', '-R'], udf: ['-udf', '-hide', name] })
      return discs.flatMap(({ name: disc, bytes }): Sample[] => [
        { name: `${disc}.zip`, bytes: newZip([{ name: disc, data: bytes }]) },
        { name: `${disc}.gz`, bytes: gzipSync(bytes) },
        { name: `${disc}.tar`, bytes: writeTar({ name: disc, data: bytes }) },
      ])
    },
  },
  {
    name: 'disc images with compressed files',
    family: 'iso',
    expectation: 'opened',
    needs: ['mkzftree', 'genisoimage'],
    make(payload, name, workdir) {
      mkdirSync(join(workdir, 'root'))
      // Programs leave files alone that do not become smaller.
      writeFileSync(join(workdir, 'root/a.tar'), writeTar({ name, data: payload }))
      run('mkzftree', ['root', 'packed'], { cwd: workdir })
      return toSamples('iso', {
        zisofs: run('genisoimage', ['-quiet', '-no-pad', '-R', '-z', 'packed'], { cwd: workdir }),
      })
    },
  },
  {
    name: 'disc images by xorriso and libarchive',
    family: 'iso',
    expectation: 'opened',
    needs: ['xorriso', 'bsdtar'],
    make(payload, name, workdir) {
      writeRoot(payload, name, workdir)
      const xorriso = (...args: string[]) => {
        run('xorriso', ['-as', 'mkisofs', '-quiet', ...args, '-o', 'a.iso', 'root'], { cwd: workdir })
        return readFileSync(join(workdir, 'a.iso'))
      }
      return toSamples('iso', {
        xorriso: xorriso(),
        'xorriso-hfsplus': xorriso('-hfsplus'),
        libarchive: run('bsdtar', ['-cf', '-', '--format=iso9660', '-C', 'root', name], { cwd: workdir }),
        'libarchive-compressed': run(
          'bsdtar',
          ['-cf', '-', '--format=iso9660', '--options=zisofs=direct', '-C', 'root', name],
          { cwd: workdir },
        ),
      })
    },
  },
  {
    name: 'WIM, each compression',
    family: 'wim',
    expectation: 'opened',
    needs: ['wimcapture'],
    extractors: ['wimlib', 'unzip and others'],
    make(payload, name, workdir) {
      writeRoot(payload, name, workdir)
      const capture = (...options: string[]) => {
        const file = join(workdir, `${options.join('')}.wim`)
        run('wimcapture', ['root', file, 'name', ...options], { cwd: workdir })
        return readFileSync(file)
      }
      const pipable = (options: string[]) => capture('--pipable', ...options)
      return [
        ...toSamples('wim', {
          none: capture('--compress=none'),
          fast: capture('--compress=fast'),
          maximum: capture('--compress=maximum'),
        }),
        ...toSamples(
          'wim',
          {
            recovery: capture('--compress=recovery', '--solid'),
            'solid-lzx': capture('--solid', '--solid-compress=LZX'),
            pipable: pipable(['--compress=none']),
            'pipable-fast': pipable(['--compress=fast']),
            'pipable-zip': newZip([{ name: 'a.wim', data: pipable(['--compress=maximum']) }]),
          },
          'ambiguous',
        ),
      ]
    },
  },
]
