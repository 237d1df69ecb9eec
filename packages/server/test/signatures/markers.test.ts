import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { compoundFile, sevenZip, tar, zip } from './archives.ts'
import { listMatches, needsClamscan, scanFiles } from './clamscan.ts'
import { eicar, prose } from './fragments.ts'

const long = `${eicar}${' '.repeat(4000)}`
const hex = (digits: string) => Buffer.from(digits.replaceAll(' ', ''), 'hex')
const after = (bytes: number, digits: string) =>
  Buffer.concat([Buffer.alloc(bytes, 1), hex(digits), Buffer.alloc(64, 1)])

const bootSector = (offset: number, name: string) => {
  const sector = Buffer.alloc(512)
  sector.write(name, offset)
  sector.write('55aa', 510, 'hex')
  return sector
}

test('a container that ClamAV cannot open is marked, whatever is inside', needsClamscan, async () => {
  const bzip2 = await sevenZip('bzip2', eicar)
  const marked: Record<string, Record<string, Uint8Array>> = {
    Archive: {
      '7z with bzip2': await sevenZip('7z', eicar, '-m0=BZip2'),
      '7z with deflate': await sevenZip('7z', eicar, '-m0=Deflate'),
      '7z with delta': await sevenZip('7z', eicar, '-m0=Delta:1', '-m1=LZMA'),
      '7z self-extractor': Buffer.concat([
        Buffer.from('MZ'),
        Buffer.alloc(600),
        await sevenZip('7z', eicar, '-m0=BZip2'),
      ]),
      'rar four': hex('526172211a0700 cf9073 0000 0d00 00000000000000'),
      'rar five': hex('526172211a070100 3392b5e5 0a 01 0506 0005 0101 808000'),
      'rar self-extractor': after(600, '526172211a070100 3392b5e5 0a 01 0506 0005 0101 808000'),
      wim: await sevenZip('wim', eicar),
      ar: Buffer.from(`!<arch>\neicar.com/      0           0     0     644     68        \`\n${eicar}`),
      rpm: hex('edabeedb 0300 0000'),
      ace: after(7, '2a2a4143452a2a'),
    },
    ZipMethod: {
      lzma: await sevenZip('zip', long, '-mm=LZMA'),
      ppmd: await sevenZip('zip', long, '-mm=PPMd'),
      xz: zip([{ name: 'a', data: eicar, method: 95 }]),
      zstd: zip([{ name: 'a', data: zstdCompressSync(eicar), method: 93 }]),
      'zstd by its old number': zip([{ name: 'a', data: zstdCompressSync(eicar), method: 20 }]),
      ...Object.fromEntries(
        [1, 2, 3, 4, 5, 7, 10, 18, 19, 94, 96, 97].map((method) => [
          `${method}`,
          zip([{ name: 'a', data: '\0\0\0', method }]),
        ]),
      ),
    },
    Zip64: { deflated: zip([{ name: 'a', data: eicar }], { zip64: true }) },
    Stream: {
      zstd: zstdCompressSync(eicar),
      'zstd of a tar': zstdCompressSync(tar('eicar.com', eicar)),
      'zstd, skippable': Buffer.concat([hex('502a4d18 04000000 61626364'), zstdCompressSync(eicar)]),
      lz4: hex('04224d18 64 40 a7 00000000'),
      'lz4, legacy': hex('02214c18 00000000'),
      lzip: hex('4c5a4950 01 0c 00000000'),
      'lzma of unknown size': hex('5d00008000 ffffffffffffffff 00'),
      'lzma of known size': hex('5d00008000 4400000000000000 00'),
      lzop: hex('894c5a4f000d0a1a0a 1040'),
      compress: hex('1f9d90 58f0d0'),
      snappy: hex('ff060000734e61507059 00'),
    },
    Bzip2Streams: { two: Buffer.concat([await sevenZip('bzip2', 'first\n'), bzip2]) },
    Disk: {
      squashfs: hex(`68737173 ${'01'.repeat(24)} 04000000`),
      'squashfs behind a program': after(
        600,
        '68737173 05000000 00000000 00000200 01000000 0100 1100 c000 0100 04000000',
      ),
      vhd: hex('636f6e6563746978 00000002'),
      'vhd, fixed': Buffer.concat([Buffer.alloc(2048, 1), hex('636f6e6563746978 00000002'), Buffer.alloc(500)]),
      vhdx: Buffer.from('vhdxfile'),
      vmdk: hex('4b444d56 01000000'),
      qcow: hex('514649fb 00000003'),
      vdi: after(64, '7f10dabe'),
      ext: after(1080, '53ef 0100 0100'),
      ntfs: Buffer.from('\xebR\x90NTFS    ', 'latin1'),
    },
    Fat: { sixteen: bootSector(54, 'FAT16   '), thirtyTwo: bootSector(82, 'FAT32   ') },
  }
  for (const [kind, files] of Object.entries(marked)) {
    const found = scanFiles(files)
    // Behind a program the marker of a search matches too, and ClamAV names one of them.
    const isAtStart = (file: string) => !/self-extractor|behind/.test(file)
    const expected = Object.fromEntries(
      Object.keys(files).map((file) => [
        file,
        isAtStart(file) || found[file] !== null ? `Heuristics.Assay.Container.${kind}` : null,
      ]),
    )
    assert.deepEqual(found, expected)
  }
})

test('a container is marked inside another, too', needsClamscan, async () => {
  const bzip2 = await sevenZip('7z', eicar, '-m0=BZip2')
  const found = scanFiles({
    'in.zip': zip([{ name: 'a.7z', data: bzip2 }]),
    'in.tar.gz': gzipSync(tar('a.zst', zstdCompressSync(eicar))),
    'in.tar': tar('a.zip', zip([{ name: 'a', data: eicar }], { zip64: true })),
  })
  assert.deepEqual(found, {
    'in.zip': 'Heuristics.Assay.Container.Archive',
    'in.tar.gz': 'Heuristics.Assay.Container.Stream',
    'in.tar': 'Heuristics.Assay.Container.Zip64',
  })
})

test('of several markers ClamAV names one, in no fixed order', needsClamscan, async () => {
  // ClamAV keeps weak indicators in an unordered table: code that acts on one must expect others.
  const data = await sevenZip('7z', zip([{ name: 'a', data: eicar }], { zip64: true }), '-m0=LZMA')
  const { both } = scanFiles({ both: data })
  assert.match(String(both), /^Heuristics\.Assay\.Container\.(Archive|Zip64)$/)
})

test('a real finding wins over a marker', needsClamscan, async () => {
  const unreadable = { name: 'a.7z', data: await sevenZip('7z', 'hello', '-m0=BZip2') }
  const lzma = await sevenZip('7z', eicar, '-m0=LZMA')
  const member = { name: 'eicar.com', data: eicar }
  const found = scanFiles({
    'marker-first.zip': zip([unreadable, member]),
    'marker-last.zip': zip([member, unreadable]),
    'method.zip': zip([{ name: 'a', data: 'x', method: 14 }, member]),
    'lzma.7z': lzma,
    'self-extractor.exe': Buffer.concat([Buffer.from('MZ'), Buffer.alloc(600), lzma]),
    'disk.img': Buffer.concat([after(1080, '53ef 0100 0100'), Buffer.alloc(2000), zip([member])]),
  })
  assert.deepEqual([...new Set(Object.values(found))], ['Eicar-Test-Signature'], JSON.stringify(found, null, 2))
})

test(
  'archives that ClamAV opens and files which only look a little like others are not marked',
  needsClamscan,
  async () => {
    const found = listMatches({
      'deflated.zip': zip([{ name: 'a.txt', data: prose(3000) }]),
      'stored.zip': zip([{ name: 'a.txt', data: prose(3000), method: 0 }]),
      'bzip2.bz2': await sevenZip('bzip2', prose(3000)),
      'xz.xz': await sevenZip('xz', prose(3000)),
      'tar.gz': gzipSync(tar('a.txt', prose(3000))),
      'knows-formats.bin': after(
        100,
        '377abcaf271c 00 526172211a07 504b0304 504b0102 504b0506 504b0606 504b0607 68737173 00',
      ),
      'sqsh.txt': `sqsh is a shell for databases. ${prose(300)}`,
      'conectix.txt': `conectix made virtual machines. ${prose(300)}`,
      'constants of Python': after(
        600,
        `504b0506${'00'.repeat(20)} 504b0102${'00'.repeat(12)} ffc99a3b 00000000 9034940000000000 1b00000000000000 ffffffffffffffff`,
      ),
      'text.txt': 'Rar! 7z PK !<arch> SQLite conectix hsqs FAT32    NTFS    ',
    })
    const marked = Object.values(found)
      .flat()
      .filter((name) => !name.startsWith('Heuristics.Assay.Search.'))
    assert.deepEqual(marked, [], JSON.stringify(found, null, 2))
  },
)

const manifest = (inner: string) =>
  `<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="content.xml">${inner}</manifest:file-entry></manifest:manifest>`
const odf = (inner: string) =>
  zip([
    { name: 'mimetype', data: 'application/vnd.oasis.opendocument.text', method: 0 },
    { name: 'content.xml', data: prose(300) },
    { name: 'META-INF/manifest.xml', data: manifest(inner) },
  ])

test('a document with a password is marked as encrypted', needsClamscan, () => {
  const found = scanFiles({
    'ooxml.docx': compoundFile({ EncryptionInfo: hex('04000400 40000000'), EncryptedPackage: Buffer.alloc(4000, 7) }),
    'odf.odt': odf('<manifest:encryption-data manifest:checksum="x"/>'),
    'word.doc': compoundFile({
      WordDocument: hex(`eca5c100 00000000 0000 0013 ${'00'.repeat(500)}`),
      '1Table': Buffer.alloc(4000, 7),
    }),
    'excel.xls': compoundFile({
      Workbook: hex(`09081000 00060500 bb0dcc07 41000000 06000000 2f003600 0100 ${'07'.repeat(500)}`),
    }),
    'powerpoint.ppt': compoundFile({ 'Current User': hex('0000f60f 20000000 14000000 dfc4d1f3') }),
  })
  assert.deepEqual(found, {
    'ooxml.docx': 'Heuristics.Assay.Encrypted.Ooxml',
    'odf.odt': 'Heuristics.Assay.Encrypted.Odf',
    'word.doc': 'Heuristics.Assay.Encrypted.Office',
    'excel.xls': 'Heuristics.Assay.Encrypted.Office',
    'powerpoint.ppt': 'Heuristics.Assay.Encrypted.Office',
  })
})

test('a document without a password is not marked as encrypted', needsClamscan, () => {
  const found = listMatches({
    'odf.odt': odf(''),
    'word.doc': compoundFile({ WordDocument: hex(`eca5c100 00000000 0000 0012 ${'00'.repeat(500)}`) }),
    'excel.xls': compoundFile({
      Workbook: hex(`09081000 00060500 bb0dcc07 41000000 06000000 e1000200 b004 ${'00'.repeat(500)}`),
    }),
    'powerpoint.ppt': compoundFile({ 'Current User': hex('0000f60f 20000000 14000000 5fc091e3') }),
    'other.ole': compoundFile({ EncryptionInfo: Buffer.alloc(64), Contents: Buffer.from('EncryptedPackage') }),
    'about.txt':
      'Streams named EncryptedPackage and EncryptionInfo; in OpenDocument <manifest:encryption-data> in the manifest.',
  })
  const marked = Object.values(found)
    .flat()
    .filter((name) => !name.startsWith('Heuristics.Assay.Search.'))
  assert.deepEqual(marked, [], JSON.stringify(found, null, 2))
})

test('content is marked for a search where a file may hide further in or in a text', needsClamscan, async () => {
  const searched: Record<string, Record<string, string | Uint8Array>> = {
    Embedded: {
      'zip behind a program': Buffer.concat([
        Buffer.from('\x7fELF'),
        Buffer.alloc(600, 1),
        zip([{ name: 'a', data: prose(300) }]),
      ]),
      'gzip behind a text': Buffer.concat([Buffer.from(prose(300)), gzipSync(eicar)]),
      'tar behind a text': Buffer.concat([Buffer.from(prose(300)), tar('a', eicar)]),
      'cabinet with other reserved bytes': Buffer.concat([
        Buffer.from(prose(300)),
        Buffer.from(`MSCF\x01\0\0\0\x8e\0\0\0\0\0\0\0\x2c\0\0\0${'\0'.repeat(40)}`),
      ]),
    },
    Anywhere: {
      'lha behind a text': `${prose(300)}\x1b\xd5-lh0-D\0\0\0D\0\0\0\0\0\0\0 \x01\x05p.comabM\0\0`,
      'phar in a picture': Buffer.from('\xff\xd8\xff __HALT_COMPILER(); ?>\n', 'latin1'),
    },
    Tar: {
      'header without a signature': `${prose(300)}00000000104\x0014627502500\x00007752\0 0`,
      'header of cpio': `${prose(300)}00000000104\x0014627502500\x000007754\x000`,
    },
    Text: {
      'shell archive': "sed 's/^X//' > a <<'SHAR_EOF'\nXtext\nSHAR_EOF\n",
      uuencode: 'uudecode <<end\nbegin 644 a\n#0V%T\n`\nend\n',
      'own end': '#!/bin/sh\ntail -n +5 "$0" | sh\nexit\n',
      mail: `Content-Type: MULTIPART/mixed; boundary=x\n\n${prose(100)}`,
    },
  }
  for (const [kind, files] of Object.entries(searched)) {
    const found = listMatches(files)
    for (const [name, matches] of Object.entries(found))
      assert.ok(matches.includes(`Heuristics.Assay.Search.${kind}`), `${name}: ${matches}`)
  }
})

test('ordinary content is not searched', needsClamscan, () => {
  const found = listMatches({
    'text.txt': prose(3000),
    'script.sh': '#!/bin/sh\nset -e\ncat file | tail -n 5 > out\n',
    'archive.zip': zip([{ name: 'a.txt', data: prose(3000) }]),
  })
  assert.deepEqual(Object.values(found).flat(), [], JSON.stringify(found, null, 2))
})
