import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { plainText, u32 } from './bytes.ts'
import type { Form } from './form.ts'
import { toSamples } from './samples.ts'
import { writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

const pack =
  (program: string, ...args: string[]) =>
  (input: Buffer) =>
    run(program, args, { input })
const nothing = Buffer.alloc(0)

/** A frame that readers of Zstandard and LZ4 skip. */
const newSkippable = (content: Buffer, number = 0) =>
  Buffer.concat([u32(0x184d_2a50 + number), u32(content.length), content])

/** Compressed streams in frames: Zstandard, LZ4, lzip and lzop. */
export const frameForms: Form[] = [
  {
    name: 'Zstandard frames',
    family: 'zstd',
    expectation: 'opened',
    needs: ['zstd'],
    extractors: ['zstd'],
    make(payload, name, workdir) {
      const zstd = pack('zstd', '-qc')
      const tar = writeTar({ name, data: payload })
      writeFileSync(join(workdir, 'tar'), tar)
      return toSamples('zst', {
        one: zstd(payload),
        'skippable-first': Buffer.concat([newSkippable(plainText), zstd(payload)]),
        'skippable-last': Buffer.concat([zstd(payload), newSkippable(plainText, 15)]),
        'skippable-between': Buffer.concat([
          zstd(payload.subarray(0, 30)),
          newSkippable(nothing, 3),
          zstd(payload.subarray(30)),
        ]),
        'large-skippable-first': Buffer.concat([newSkippable(Buffer.alloc(70_000)), zstd(payload)]),
        'empty-first': Buffer.concat([zstd(nothing), zstd(payload)]),
        'without-checksum': pack('zstd', '-qc', '--no-check')(payload),
        'with-size': run('zstd', ['-qc', 'tar'], { cwd: workdir }),
        'without-size': zstd(tar),
        'long-window': pack('zstd', '-qc', '--long=27')(tar),
        best: pack('zstd', '-qc', '-19')(tar),
      })
    },
  },
  {
    name: 'Zstandard with content in a skippable frame or after it',
    family: 'zstd',
    expectation: 'ambiguous',
    needs: ['zstd'],
    extractors: ['zstd'],
    make(payload, name) {
      const zstd = pack('zstd', '-qc')
      const tar = writeTar({ name, data: payload })
      return toSamples('zst', {
        'text-after': Buffer.concat([zstd(payload), plainText]),
        'stream-in-skippable': Buffer.concat([newSkippable(zstd(tar)), zstd(plainText)]),
        'tar-in-second-frame': Buffer.concat([zstd(writeTar({ name: 'a.txt', data: plainText })), zstd(tar)]),
      })
    },
  },
  {
    name: 'LZ4 frames',
    family: 'lz4',
    expectation: 'ambiguous',
    needs: ['lz4'],
    extractors: ['lz4'],
    make(payload, name) {
      const lz4 = pack('lz4', '-qc')
      return toSamples('lz4', {
        one: lz4(payload),
        legacy: pack('lz4', '-qcl')(payload),
        dependent: pack('lz4', '-qc', '-BD', '-B4')(payload),
        'without-checksum': pack('lz4', '-qc', '--no-frame-crc')(payload),
        'two-frames': Buffer.concat([lz4(payload.subarray(0, 30)), lz4(payload.subarray(30))]),
        'skippable-first': Buffer.concat([newSkippable(plainText), lz4(payload)]),
        tar: lz4(writeTar({ name, data: payload })),
      })
    },
  },
  {
    name: 'lzip members',
    family: 'lzip',
    expectation: 'ambiguous',
    needs: ['lzip'],
    extractors: ['lzip'],
    make(payload, name) {
      const lzip = pack('lzip', '-c')
      return toSamples('lz', {
        one: lzip(payload),
        'two-members': Buffer.concat([lzip(payload.subarray(0, 30)), lzip(payload.subarray(30))]),
        tar: lzip(writeTar({ name, data: payload })),
        'text-after': Buffer.concat([lzip(payload), plainText]),
      })
    },
  },
  {
    name: 'lzop files',
    family: 'lzop',
    expectation: 'ambiguous',
    needs: ['lzop'],
    extractors: ['lzop'],
    make(payload, name) {
      const lzop = pack('lzop', '-c')
      return toSamples('lzo', {
        one: lzop(payload),
        fastest: pack('lzop', '-1c')(payload),
        best: pack('lzop', '-9c')(payload),
        tar: lzop(writeTar({ name, data: payload })),
      })
    },
  },
]
