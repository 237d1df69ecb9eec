import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { newRar4, newRar5 } from '../support/archives.ts'
import { plainText } from './bytes.ts'
import type { Form } from './form.ts'
import { newAsar, newBsdAr, newLha, newWarc } from './other-writers.ts'
import { packFiles, toSamples, writeFiles } from './samples.ts'
import { writeTar } from './tar-writer.ts'
import { run } from './tools.ts'

const sevenZip = ['a', '-bd', '-t7z']

/** Archives of other kinds, as ordinary programs write them. */
export const archiveForms: Form[] = [
  {
    name: '7z, each method',
    family: '7z',
    expectation: 'opened',
    needs: ['7z'],
    make: (payload, name, workdir) =>
      packFiles('7z', payload, name, workdir, [
        ...['Copy', 'LZMA', 'LZMA2', 'PPMd', 'BZip2', 'Deflate', 'Deflate64', 'Delta'].map(
          (method): [string, string[]] => [
            `${method.toLowerCase()}.7z`,
            [...sevenZip, `-m0=${method}`, `${method.toLowerCase()}.7z`, name],
          ],
        ),
        ['bcj.7z', [...sevenZip, '-m0=BCJ', '-m1=LZMA', 'bcj.7z', name]],
        ['bcj2.7z', [...sevenZip, '-mf=BCJ2', 'bcj2.7z', name]],
        ['solid.7z', [...sevenZip, '-ms=on', 'solid.7z', 'readme.txt', name]],
        ['plain-header.7z', [...sevenZip, '-mhc=off', '-ms=off', 'plain-header.7z', name, 'readme.txt']],
      ]),
  },
  {
    name: '7z that extracts itself, and 7z with other bytes around it',
    family: '7z',
    extractors: ['7z as a parser'],
    expectation: 'opened',
    needs: ['7z'],
    make(payload, name, workdir) {
      const [archive, selfExtracting] = packFiles('7z', payload, name, workdir, [
        ['a.7z', [...sevenZip, 'a.7z', name]],
        ['a.exe', [...sevenZip, '-sfx', 'a.exe', name]],
      ])
      if (archive === undefined || selfExtracting === undefined) return []
      return [
        selfExtracting,
        { name: 'text-before.7z', bytes: Buffer.concat([plainText, archive.bytes]) },
        { name: 'text-after.7z', bytes: Buffer.concat([archive.bytes, plainText]), expectation: 'ambiguous' },
        { name: 'twice.7z', bytes: Buffer.concat([archive.bytes, archive.bytes]), expectation: 'ambiguous' },
      ]
    },
  },
  {
    name: 'RAR, stored',
    family: 'rar',
    expectation: 'opened',
    needs: [],
    make(payload, name) {
      const member = { name, data: payload }
      return toSamples('rar', {
        'rar-4': newRar4(member),
        'text-before': Buffer.concat([plainText, newRar4(member)]),
        // Lengths of 128 bytes do not fit into the one byte that the writer uses.
        ...(payload.length < 128 ? { 'rar-5': newRar5(member) } : {}),
      })
    },
  },
  {
    name: 'cpio, each format',
    family: 'cpio',
    expectation: 'opened',
    needs: ['cpio'],
    make(payload, name, workdir) {
      writeFiles(payload, name, workdir)
      const formats = ['bin', 'odc', 'newc', 'crc', 'hpbin', 'hpodc']
      return formats.map((format) => ({
        name: `${format}.cpio`,
        bytes: run('cpio', ['-o', '--quiet', '-H', format], {
          cwd: workdir,
          input: Buffer.from(`readme.txt\n${name}\n`),
        }),
      }))
    },
  },
  {
    name: 'cpio after the end of another one',
    family: 'cpio',
    expectation: 'ambiguous',
    needs: ['cpio'],
    make(payload, name, workdir) {
      writeFiles(payload, name, workdir)
      const pack = (file: string) =>
        run('cpio', ['-o', '--quiet', '-H', 'newc'], { cwd: workdir, input: Buffer.from(`${file}\n`) })
      const [text, bad] = [pack('readme.txt'), pack(name)]
      return toSamples('cpio', {
        'payload-last': Buffer.concat([text, bad]),
        'payload-first': Buffer.concat([bad, text]),
        // The first part of an initial ram disk is not compressed, the second one is.
        'compressed-last': Buffer.concat([text, gzipSync(bad)]),
        compressed: gzipSync(bad),
      })
    },
  },
  {
    name: 'ar archives',
    family: 'ar',
    expectation: 'opened',
    needs: ['ar', 'bsdtar'],
    extractors: ['ar'],
    make(payload, name, workdir) {
      const longName = `a-long-name-of-a-member-${name}`
      writeFileSync(join(workdir, longName), payload)
      const samples = packFiles('ar', payload, name, workdir, [
        ['usual.a', ['rc', 'usual.a', 'readme.txt', name]],
        ['long-name.a', ['rc', 'long-name.a', longName]],
      ])
      return [
        ...samples,
        { name: 'bsd.a', bytes: run('bsdtar', ['-cf', '-', '--format=arbsd', name], { cwd: workdir }) },
        // 7-Zip takes the byte behind an odd length for data after the end.
        { name: 'bsd-long-name.a', bytes: newBsdAr(longName, payload), expectation: 'ambiguous' },
      ]
    },
  },
  {
    name: 'Debian packages',
    family: 'ar',
    expectation: 'opened',
    needs: ['dpkg-deb'],
    extractors: ['dpkg-deb'],
    make(payload, name, workdir) {
      const root = join(workdir, 'root')
      mkdirSync(join(root, 'DEBIAN'), { recursive: true })
      mkdirSync(join(root, 'opt'))
      const control =
        'Package: sample\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: sample\n'
      writeFileSync(join(root, 'DEBIAN/control'), control)
      writeFileSync(join(root, 'opt', name), payload)
      // Tools refuse a package whose control directory others may not read.
      chmodSync(join(root, 'DEBIAN'), 0o755)
      return packFiles(
        'dpkg-deb',
        payload,
        name,
        workdir,
        ['none', 'gzip', 'xz', 'zstd'].map((kind) => [
          `${kind}.deb`,
          ['--root-owner-group', `-Z${kind}`, '-b', 'root', `${kind}.deb`],
        ]),
      )
    },
  },
  {
    name: 'RPM packages',
    family: 'rpm',
    expectation: 'opened',
    needs: ['rpmbuild', 'rpm2cpio'],
    extractors: ['rpm2cpio and cpio'],
    make(payload, name, workdir) {
      const root = join(workdir, 'root')
      mkdirSync(join(root, 'opt'), { recursive: true })
      writeFileSync(join(root, 'opt', name), payload)
      const fields = 'Name: sample\nVersion: 1\nRelease: 1\nSummary: sample\nLicense: none\nBuildArch: noarch\n'
      const install = `%install\nmkdir -p %{buildroot}/opt\ncp ${root}/opt/${name} %{buildroot}/opt/\n`
      writeFileSync(join(workdir, 'sample.spec'), `${fields}%description\nsample\n${install}%files\n/opt/${name}\n`)
      return Object.entries({ gzip: 'w9.gzdio', xz: 'w2.xzdio', zstd: 'w3.zstdio' }).map(([kind, payloadType]) => {
        const defines = [`_topdir ${workdir}`, `_binary_payload ${payloadType}`, '__os_install_post %{nil}'].flatMap(
          (define) => ['-D', define],
        )
        run('rpmbuild', ['-bb', '--quiet', '--nodeps', ...defines, 'sample.spec'], { cwd: workdir })
        copyFileSync(join(workdir, 'RPMS/noarch/sample-1-1.noarch.rpm'), join(workdir, `${kind}.rpm`))
        return { name: `${kind}.rpm`, bytes: run('cat', [`${kind}.rpm`], { cwd: workdir }) }
      })
    },
  },
  {
    name: 'cabinets',
    family: 'cab',
    expectation: 'opened',
    needs: ['gcab'],
    extractors: ['cabextract'],
    make: (payload, name, workdir) =>
      packFiles('gcab', payload, name, workdir, [
        ['stored.cab', ['-cn', 'stored.cab', 'readme.txt', name]],
        ['mszip.cab', ['-cz', 'mszip.cab', name, 'readme.txt']],
      ]).flatMap((sample) => [
        sample,
        { ...sample, name: `text-before-${sample.name}`, bytes: Buffer.concat([plainText, sample.bytes]) },
        { ...sample, name: `text-after-${sample.name}`, bytes: Buffer.concat([sample.bytes, plainText]) },
      ]),
  },
  {
    name: 'ARJ, each method',
    family: 'arj',
    expectation: 'opened',
    needs: ['arj'],
    extractors: ['arj'],
    make: (payload, name, workdir) =>
      packFiles(
        'arj',
        payload,
        name,
        workdir,
        [0, 1, 2, 3, 4].map((method) => [
          `method-${method}.arj`,
          ['a', '-y', `-m${method}`, `method-${method}.arj`, name],
        ]),
      ),
  },
  {
    name: 'LHA, each header level',
    family: 'lha',
    expectation: 'ambiguous',
    needs: [],
    extractors: ['lha'],
    make: (payload, name) =>
      ([0, 1, 2] as const).map((level) => ({ name: `level-${level}.lzh`, bytes: newLha(payload, name, level) })),
  },
  {
    name: 'xar, each compression',
    family: 'xar',
    expectation: 'ambiguous',
    needs: ['bsdtar'],
    make: (payload, name, workdir) =>
      packFiles(
        'bsdtar',
        payload,
        name,
        workdir,
        ['none', 'gzip', 'bzip2', 'lzma', 'xz'].map((kind) => [
          `${kind}.xar`,
          ['-cf', `${kind}.xar`, '--format=xar', `--options=xar:compression=${kind}`, 'readme.txt', name],
        ]),
      ),
  },
  {
    name: 'shell archives',
    family: 'script',
    expectation: 'ambiguous',
    needs: ['shar', 'bsdtar', 'uudecode'],
    extractors: ['sh'],
    make(payload, name, workdir) {
      writeFiles(payload, name, workdir)
      const shar = (...args: string[]) => run('shar', ['-q', ...args, name], { cwd: workdir })
      return toSamples('sh', {
        text: shar('-T'),
        binary: shar('-B'),
        compressed: shar('-z'),
        libarchive: run('bsdtar', ['-cf', '-', '--format=shar', name], { cwd: workdir }),
      })
    },
  },
  {
    name: 'web archives',
    family: 'warc',
    expectation: 'ambiguous',
    needs: ['bsdtar', 'gzip'],
    make(payload, name, workdir) {
      writeFiles(payload, name, workdir)
      const records = [newWarc('resource', plainText, 'text/plain'), newWarc('resource', payload)]
      return toSamples('warc', {
        libarchive: run('bsdtar', ['-cf', '-', '--format=warc', 'readme.txt', name], { cwd: workdir }),
        resources: Buffer.concat(records),
        response: newWarc('response', payload),
        'tar-in-response': newWarc('response', writeTar({ name, data: payload }), 'application/x-tar'),
        gzip: Buffer.concat(records.map((record) => gzipSync(record))),
      })
    },
  },
  {
    name: 'asar',
    family: 'asar',
    expectation: 'ambiguous',
    needs: [],
    make: (payload, name) =>
      toSamples('asar', {
        alone: newAsar({ [name]: payload }),
        last: newAsar({ 'readme.txt': plainText, [name]: payload }),
        first: newAsar({ [name]: payload, 'readme.txt': plainText }),
        tar: newAsar({ 'a.tar': writeTar({ name, data: payload }) }),
      }),
  },
]
