import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { readContent } from '../../../src/engines/unpack/child/read-content.ts'
import { openBufferSource, type Reading } from '../../../src/engines/unpack/child/reader.ts'
import { member, newRar4, newTar, newZip, writeArchive } from '../unpack-archives.ts'
import { collectMembers } from './reader-support.ts'

const text = Buffer.from('#!/bin/sh\nexec something\n')

/** Reads content; instead of 7-Zip, a stand-in records the type that it was asked for and accounts for everything. */
async function read(content: Buffer, sevenZip: Partial<Reading> = {}) {
  const { given, members } = collectMembers()
  const types: string[] = []
  const answer = await readContent(openBufferSource(content), members, async (source, type) => {
    types.push(type)
    return { accounted: [{ start: 0, end: source.bytes }], doubts: [], ...sevenZip }
  })
  return { ...answer, given, types }
}

describe('a container behind other content is read, and the rest is content of its own', () => {
  test('zip, gzip, tar', async () => {
    for (const container of [newZip([{}]), gzipSync(member), newTar(['a'])]) {
      const { given, doubts } = await read(Buffer.concat([text, container, text]))
      assert.deepEqual(doubts, [])
      assert.ok(given.some(({ bytes }) => bytes.equals(member)))
      assert.ok(given.some(({ bytes }) => bytes.subarray(0, text.length).equals(text)))
      assert.ok(given.every(({ isSeen }) => !isSeen))
    }
  })

  test('7z and bzip2, by 7-Zip', async () => {
    assert.deepEqual((await read(Buffer.concat([text, await writeArchive(['-t7z'])]))).types, ['7z'])
    assert.deepEqual((await read(Buffer.concat([text, await writeArchive(['-tbzip2'])]))).types, ['bzip2'])
  })
})

test('a container that begins with text is read by 7-Zip, whatever readers of text make of it', async () => {
  const script = '#!/bin/sh\ncat > a <<END\ntext\nEND\n'
  const header = `${'script.sh/'.padEnd(16)}0           0     0     644     ${String(script.length).padEnd(10)}\`\n`
  assert.deepEqual((await read(Buffer.from(`!<arch>\n${header}${script}`))).types, ['ar'])
})

test('chance is no container: what only looks like one raises no doubt', async () => {
  const noise = ['PK\x03\x04', '\x1f\x8b\x08', 'BZh91AY&SY', '7z\xbc\xaf\x27\x1c', 'Rar!\x1a\x07\x00', 'ustar', 'MSCF']
  const content = Buffer.from(`text ${noise.map((bytes) => `${bytes}and text that follows `).join('')}`, 'latin1')
  const { doubts, isOpened } = await read(content, { accounted: [], doubts: ['UnsupportedContainer'] })
  assert.deepEqual([doubts, isOpened], [[], false])
})

test('a gzip header in a program is no container, and does not hide one behind it', async () => {
  const header = Buffer.from(
    '\x1f\x8b\x08\0\0\0\0\0\0\x03requires=corerouter and whatever a linker places behind it',
    'latin1',
  )
  const { doubts, given } = await read(Buffer.concat([text, header, text, newZip([{}])]))
  assert.deepEqual(doubts, [])
  assert.ok(given.some(({ bytes }) => bytes.equals(member)))
})

test('a Zstandard header in a program is no container, whatever 7-Zip makes of it', async () => {
  const header = Buffer.concat([Buffer.from('28b52ffd00000000', 'hex'), Buffer.from('COLUMNS\0write\0\0\0read\0')])
  const broken: Partial<Reading> = { doubts: ['UnsupportedContainer'], givenBytes: 0 }
  assert.deepEqual((await read(Buffer.concat([text, header]), broken)).doubts, [])
  const further: Partial<Reading> = { ...broken, givenBytes: 5000 }
  assert.deepEqual((await read(Buffer.concat([text, header]), further)).doubts, ['UnsupportedContainer'])
})

test('a gzip file that breaks further in is a doubt', async () => {
  const file = gzipSync(randomBytes(5000)).subarray(0, 3000)
  assert.deepEqual((await read(Buffer.concat([text, file]))).doubts, ['UnsupportedContainer'])
})

test('a container that is certainly one, and does not open, is a doubt', async () => {
  const archive = await writeArchive(['-t7z'])
  const content = Buffer.concat([text, archive])
  const { doubts } = await read(content, { accounted: [], doubts: ['UnsupportedContainer'] })
  assert.deepEqual(doubts, ['UnsupportedContainer'])
  const installer = Buffer.concat([text, Buffer.from('rDlPtS\xcd\xe6\xd7\x7b\x0b\x2a and more', 'latin1')])
  assert.deepEqual((await read(installer)).doubts, ['UnsupportedContainer'])
})

describe('a RAR of which only The Unarchiver reads the headers', () => {
  const rar = newRar4()
  const change = (at: number) => Buffer.from(rar).fill(0xff & ~(rar[at] as number), at, at + 1)
  const failing: Partial<Reading> = { accounted: [], doubts: ['UnsupportedContainer'] }

  test('is a doubt with a wrong checksum, without a main header and behind long blocks', async () => {
    const block = Buffer.from([0, 0, 0x75, 0, 0x80, 11, 0, 0x40, 0x0d, 3, 0])
    const longBlock = Buffer.concat([block, Buffer.alloc(200_000)])
    const forms = [
      change(7),
      Buffer.concat([rar.subarray(0, 7), rar.subarray(20)]),
      Buffer.concat([rar.subarray(0, 7), longBlock, rar.subarray(20)]),
    ]
    for (const form of forms) {
      assert.deepEqual((await read(Buffer.concat([text, form]), failing)).doubts, ['UnsupportedContainer'])
    }
  })

  test('is none where only its signature is there', async () => {
    const behind = ['crc of a header', '\0\0\x73\0\0\x0d\0\0\0\0\0\0\0\0\0and text', '\0'.repeat(80)]
    for (const bytes of behind) {
      const content = Buffer.concat([text, rar.subarray(0, 7), Buffer.from(bytes, 'latin1'), text])
      assert.deepEqual((await read(content, failing)).doubts, [])
    }
  })
})

test('a container is read whose header looks like encoded text, in the line in which it begins', async () => {
  const name = Buffer.from('a.com\0')
  const fields = Array.from({ length: 13 }, (_, n) => (n === 11 ? '00000006' : '00000000')).join('')
  const cpio = Buffer.concat([Buffer.from(`070701${fields}`), name])
  assert.deepEqual((await read(Buffer.concat([Buffer.from('J'.repeat(37)), cpio]))).types, ['cpio'])
})

describe('formats that 7-Zip finds at any place of a file', () => {
  const name = Buffer.from('a.com\0')
  const fields = Array.from({ length: 13 }, (_, n) => (n === 11 ? '00000006' : '00000000')).join('')
  const binary = Buffer.alloc(26)
  for (const [at, word] of [0o070707, 0, 0, 0o100644].entries()) binary.writeUInt16LE(word, 2 * at)
  binary.writeUInt16LE(name.length, 20)
  const superblock = Buffer.alloc(4096)
  superblock.writeUInt32LE(16, 1024 + 4)
  superblock.writeUInt16LE(0xef53, 1024 + 56)
  const forms: Record<string, Buffer> = {
    xar: Buffer.from('xar!\0\x1c\0\x01', 'latin1'),
    cpio: Buffer.concat([Buffer.from(`070701${fields}`), name]),
    'cpio, binary': Buffer.concat([binary, name, Buffer.from('TRAILER!!!\0')]),
    'cpio, binary, the other order': Buffer.concat([binary.swap16(), name, Buffer.from('TRAILER!!!\0')]),
    cramfs: Buffer.concat([Buffer.from('453dcd28', 'hex'), Buffer.alloc(12), Buffer.from('Compressed ROMFS')]),
    ext: superblock,
    qcow: Buffer.from('QFI\xfb\0\0\0\x03', 'latin1'),
    vmdk: Buffer.from('KDMV\x01\0\0\0'),
  }
  for (const [form, bytes] of Object.entries(forms)) {
    test(form, async () => {
      assert.deepEqual((await read(Buffer.concat([text, bytes, text]))).types, [form.split(',')[0]])
    })
  }
})

test('a cpio of which 7-Zip does not read a field is a doubt: GNU cpio takes the field for zero', async () => {
  const cpio = Buffer.from(`070701${'0'.repeat(40)}\0${'0'.repeat(47)}00000006${'0'.repeat(8)}a.com\0`)
  const failing: Partial<Reading> = { accounted: [], doubts: ['UnsupportedContainer'] }
  assert.deepEqual((await read(Buffer.concat([text, cpio]), failing)).doubts, ['UnsupportedContainer'])
})

test('a tar without a signature is read at any place', async () => {
  const tar = Buffer.concat([newTar(['a']).fill(0, 257, 265), Buffer.alloc(1024)])
  const sum = tar.subarray(0, 512).reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0)
  for (const end of ['\0 ', ' \0', '\0']) {
    tar.write(`${sum.toString(8).padStart(8 - end.length, '0')}${end}`, 148, 'latin1')
    const { given } = await read(Buffer.concat([Buffer.from('7 bytes'), tar]))
    assert.ok(given.some(({ bytes }) => bytes.equals(member)))
  }
  for (const before of [
    Buffer.from('7 bytes'),
    Buffer.alloc(200 * 512, 'text\n'),
    Buffer.alloc(2 ** 20 - 130, 'text\n'),
  ]) {
    const { given } = await read(Buffer.concat([before, tar]))
    assert.ok(
      given.some(({ bytes }) => bytes.equals(member)),
      String(before.length),
    )
  }
})

test('a container in a PDF that is no part of it is read', async () => {
  const object = '7 0 obj\n<< /A 1 >>\nendobj\n'
  for (const behind of ['', `${object}%%EOF\n`]) {
    const { given } = await read(
      Buffer.concat([Buffer.from(`%PDF-1.4\n${object}`), newTar(['a']), Buffer.from(behind)]),
    )
    assert.ok(given.some(({ bytes }) => bytes.equals(member)))
  }
})

test('a container in an RTF is read', async () => {
  const { given } = await read(Buffer.concat([Buffer.from('{\\rtf1 text\n'), newTar(['a']), Buffer.from('}\n')]))
  assert.ok(given.some(({ bytes }) => bytes.equals(member)))
})

describe('archives whose heads only some programs take for such', () => {
  const failing: Partial<Reading> = { accounted: [], doubts: ['UnsupportedContainer'] }
  const lha = (level: number, fields: string, method = '-lh0-') =>
    Buffer.from(`${method}D\0\0\0D\0\0\0\0\0\0\0 ${String.fromCharCode(level)}${fields}`, 'latin1')
  const short = (bytes: Buffer) =>
    Buffer.concat([Buffer.from([bytes.length, bytes.reduce((sum, byte) => sum + byte, 0)]), bytes, member])
  const cab = (head: string) =>
    Buffer.from(`MSCF${head}\x01\0\x01\0${'\0'.repeat(30)}${member.toString('latin1')}`, 'latin1')
  const odd: Record<string, Buffer> = {
    'LHA, level 0': short(lha(0, '\x05p.comab')),
    'LHA, level 1': short(lha(1, '\x05p.comabM\0\0')),
    'LHA, level 2': Buffer.concat([Buffer.from('\x22\0'), lha(2, 'abM\x08\0\x01p.com\0\0'), member]),
    PMarc: short(lha(0, '\x05p.comab', '-pm0-')),
    'a cabinet with reserved bytes': cab('\x01\0\0\0\x40\0\0\0\0\0\0\0\x2c\0\0\0\0\0\0\0\x03\x01'),
    'a cabinet of another version': cab('\0\0\0\0\x40\0\0\0\0\0\0\0\x2c\0\0\0\0\0\0\0\x09\x02'),
  }
  for (const [form, bytes] of Object.entries(odd)) {
    test(`${form} is a doubt where it does not open`, async () => {
      assert.deepEqual((await read(Buffer.concat([text, bytes, text]), failing)).doubts, ['UnsupportedContainer'])
    })
  }

  test('their names alone are none', async () => {
    const words = [
      'MSCF and more text that is long enough',
      '.\0-lh5- and -lh0- \0\0\0\0\0\0\0\0 \x01\x05text',
      '-pm0-',
      '-lz4-',
    ]
    const content = Buffer.from(words.join(' and text behind it '), 'latin1')
    assert.deepEqual((await read(Buffer.concat([text, content]), failing)).doubts, [])
  })
})

test('more heads than are looked at are a doubt', async () => {
  assert.deepEqual((await read(Buffer.concat([text, Buffer.alloc(800_000, 'hsqs')]))).doubts, ['ScanLimitExceeded'])
})

test('formats that ClamAV skips are given without the bytes by which it tells them', async () => {
  for (const head of ['ID3\x03', 'OggS', '.RMF', '\xff\xfb\x90', 'SQLite format 3\0']) {
    const content = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from('and so on')])
    const { given, doubts } = await read(content)
    assert.deepEqual(doubts, [])
    assert.deepEqual(
      given.map(({ bytes }) => bytes.toString('latin1')),
      [content.subarray(1).toString('latin1')],
    )
  }
})

test('an archive in a database of SQLite is a doubt', async () => {
  const content = 'SQLite format 3\0CREATE TABLE sqlar(name TEXT PRIMARY KEY, data BLOB)'
  assert.deepEqual((await read(Buffer.from(content))).doubts, ['UnsupportedContainer'])
})
