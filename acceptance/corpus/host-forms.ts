import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { newRar4, newZip } from '../support/archives.ts'
import { plainText } from './bytes.ts'
import type { Form, Sample } from './form.ts'
import { hosts, newId3, newMpegFrames } from './host-writers.ts'
import { packFiles, toSamples } from './samples.ts'
import { writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

/** An archive of each kind that tools find behind other bytes, and two kinds that most tools do not find. */
function newArchives(payload: Buffer, name: string, workdir: string): Record<string, Buffer> {
  const member = { name, data: payload }
  const [archive] = packFiles('7z', payload, name, workdir, [['a.7z', ['a', '-bd', '-t7z', 'a.7z', name]]])
  return {
    zip: newZip([member]),
    '7z': archive?.bytes ?? Buffer.alloc(0),
    rar: newRar4(member),
    tar: writeTar(member),
    gz: gzipSync(payload),
  }
}

/** Archives behind a whole file of another format. */
export const hostForms: Form[] = [
  ...Object.entries(hosts).map(
    ([host, makeHost]): Form => ({
      name: `archives behind ${host}`,
      family: 'archive behind another file',
      expectation: 'opened',
      needs: ['7z', 'python3'],
      extractors: ['7z as a parser'],
      make(payload, name, workdir) {
        const head = makeHost(workdir)
        const isContainer = host === 'a tar' || host === 'a gzip'
        return Object.entries(newArchives(payload, name, workdir)).map(
          ([kind, bytes]): Sample => ({
            name: `a.${kind}`,
            bytes: Buffer.concat([head, bytes]),
            // Programs read a tar or a gzip from its first byte, so that only few see it here;
            // those who read a container to its end do not see what follows.
            expectation: kind === 'tar' || kind === 'gz' || isContainer ? 'ambiguous' : 'opened',
          }),
        )
      },
    }),
  ),
  {
    name: 'zip inside an ID3 tag',
    family: 'archive behind another file',
    expectation: 'opened',
    needs: [],
    make(payload, name) {
      const zip = newZip([{ name, data: payload }])
      return toSamples('mp3', {
        alone: newId3(zip),
        'with-frames': Buffer.concat([newId3(zip), newMpegFrames()]),
        'between-frames': Buffer.concat([newMpegFrames(), zip, newMpegFrames()]),
      })
    },
  },
  {
    name: 'archives that 7-Zip finds behind text',
    family: 'archive behind another file',
    expectation: 'opened',
    needs: ['7z', 'cpio', 'bsdtar', 'mkfs.cramfs'],
    make(payload, name, workdir) {
      writeFileSync(join(workdir, name), payload)
      const cpio = (kind: string) =>
        run('cpio', ['-o', '--quiet', '-H', kind], { cwd: workdir, input: Buffer.from(name) })
      const folder = join(workdir, 'folder')
      mkdirSync(folder)
      copyFileSync(join(workdir, name), join(folder, name))
      run('mkfs.cramfs', [folder, join(workdir, 'a.cramfs')])
      const archives = {
        ...Object.fromEntries(['newc', 'crc', 'odc', 'bin'].map((kind) => [`cpio-${kind}`, cpio(kind)])),
        xar: run('bsdtar', ['-cf', '-', '--format', 'xar', name], { cwd: workdir }),
        cramfs: readFileSync(join(workdir, 'a.cramfs')),
      }
      return Object.entries(archives).map(
        ([kind, bytes]): Sample => ({ name: `a-${kind}.bin`, bytes: Buffer.concat([plainText, bytes]) }),
      )
    },
  },
  {
    name: 'RAR 4 with a wrong header behind text',
    family: 'archive behind another file',
    expectation: 'ambiguous',
    needs: [],
    make(payload, name) {
      const rar = newRar4({ name, data: payload })
      const changed = (at: number) => {
        const bytes = Buffer.from(rar)
        bytes[at] = 0xff - (bytes[at] as number)
        return Buffer.concat([plainText, bytes])
      }
      return toSamples('rar', {
        checksum: changed(7),
        kind: changed(9),
        'no-main-header': Buffer.concat([plainText, rar.subarray(0, 7), rar.subarray(20)]),
      })
    },
  },
]
