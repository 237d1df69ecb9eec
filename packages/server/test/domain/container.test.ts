import assert from 'node:assert/strict'
import { createCipheriv } from 'node:crypto'
import { describe, test } from 'node:test'
import { canHoldContent, findKnownDoubts } from '../../src/domain/content/container.ts'
import { findContainerFormat } from '../../src/domain/content/container-formats.ts'
import { headBytes } from '../../src/domain/content/content.ts'
import {
  newContent,
  newRar4,
  newRar5,
  newTar,
  newZip,
  writeArchive,
  type ZipMember,
} from '../engines/unpack-archives.ts'

const find = async (bytes: Buffer, options = {}) => await findKnownDoubts(newContent(bytes, options))

test('what is no container is known at once', () => {
  const others = [
    '',
    'P',
    'PK',
    'MZ\x90',
    'BZhello world',
    '7z',
    'Rar!',
    ']\x00\x00 text',
    '\x60\xea text',
    '\x1f\x1e text',
    // A description of a terminal.
    '\x1a\x01\x1e\x00\x07\x00\x0f\x00\x69\x01\xb2\x03Eterm|a terminal of the Enlightenment project',
    '\x1a\x02A line of text that is no name',
    '\x00\x00\x00{ text of some length',
    'hello -lh5- '.repeat(900),
    // Words that are signatures.
    ...['StuffIt', 'TAPE', 'AA01', 'AEA1', 'Blink', 'CRUSH', 'DMS!', 'GCAX'].map((word) => `${word} and other words`),
    ': a colon',
    ':03000000010203F6',
    ':03000000010203F8\r\n',
  ]
  for (const text of others) assert.equal(findKnownDoubts(newContent(Buffer.from(text, 'latin1'))), undefined, text)
})

test('a web page is searched when bytes that no text has stand in it, or when it is long', () => {
  const page = Buffer.from(
    '<!DOCTYPE html>\n<html><body>An ordinary page, of which there are many more.</body></html>\n',
  )
  assert.equal(canHoldContent(page), false)
  assert.equal(canHoldContent(Buffer.concat([page, Buffer.from([0x1f, 0x8b, 8, 0])])), true)
  assert.equal(canHoldContent(Buffer.from('<html>\nBZh91AY&SY\0\0\0')), true)
  assert.equal(canHoldContent(Buffer.concat([page, Buffer.alloc(headBytes, 'a')]).subarray(0, headBytes)), true)
})

test('every tag by which ClamAV knows a web page is known, in any case, and random bytes are seldom taken for one', () => {
  const names = ['a href=', 'head>', 'html>', 'iframe', 'img', 'object', 'script', 'table', 'p>', '!DOCTYPE', '!--']
  const starts = names.flatMap((name) => [name, name.toUpperCase()]).map((name) => `text <${name}`)
  for (const start of [...starts, '<%@ LANGUAGE = "VBScript"'])
    assert.equal(canHoldContent(Buffer.from(`${start} some text\0`, 'latin1')), true, start)
  assert.equal(canHoldContent(Buffer.from('a < b, a <b, List<T\0', 'latin1')), false)
  const noise = Array.from({ length: 1000 }, (_, i) => randomHead(i))
  const taken = noise.filter((head) => canHoldContent(head))
  assert.ok(taken.length < 50, `${taken.length} of 1000`)
})

/** The same bytes for the same seed: 1 KB without any structure. */
function randomHead(seed: number): Buffer {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, seed), Buffer.alloc(16, seed >> 8))
  return cipher.update(Buffer.alloc(1024))
}

describe('formats are told from the head', () => {
  const forms: [name: string, head: string | Buffer, format: string, doubt?: string][] = [
    ['gzip', '\x1f\x8b\x08\x00', 'gzip'],
    ['bzip2', 'BZh91AY&SY', 'bzip2'],
    ['xz', '\xfd7zXZ\x00', 'xz'],
    ['zstd', '\x28\xb5\x2f\xfd', 'zstd'],
    ['zstd behind a frame to skip', '\x5a\x2a\x4d\x18', 'zstd'],
    ['lzma', '\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00abcd', 'lzma'],
    ['lzma with other properties', '\x2e\x39\x30\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00abcd', 'lzma'],
    ['lzma with another dictionary', '\x5d\x39\x30\x00\x00\x99\x00\x00\x00\x00\x00\x00\x00\x00abcd', 'lzma'],
    ['rar', newRar4(), 'rar'],
    ['rar5', newRar5(), 'rar5'],
    ['tar', newTar(['a']), 'tar'],
    ['wim', 'MSWIM\x00\x00\x00', 'wim'],
    ['deb', '!<arch>\ndebian-binary', 'ar'],
    ['lzh', '  -lh5-', 'lzh'],
    ['iso', Buffer.concat([Buffer.alloc(32_769), Buffer.from('CD001')]), 'iso'],
    ['bzip3', 'BZ3v1\x00', 'bzip3', 'UnsupportedContainer'],
    ['rzip', 'RZIP\x02\x01', 'rzip', 'UnsupportedContainer'],
    ['qpress', 'qpress10', 'qpress', 'UnsupportedContainer'],
    ['a file of Mozilla', 'mozLz40\x00', 'mozilla-lz4', 'UnsupportedContainer'],
    ['mpq', 'MPQ\x1a', 'mpq', 'UnsupportedContainer'],
    ['lzx', 'LZX\x00', 'lzx', 'UnsupportedContainer'],
    ['pack', '\x1f\x1e\x00\x00\x00\x44\x08\x02\x01', 'pack', 'UnsupportedContainer'],
    [
      'arc',
      '\x1a\x02eicar.com\x00\xf9\xd0\xffD\x00\x00\x00\x71\x5dQF\x13\x87D\x00\x00\x00',
      'arc',
      'UnsupportedContainer',
    ],
    ['dar', '\x00\x00\x00\x7bZ\x15\xfcj\x00\x00\x00\x00 \x1fT', 'dar', 'UnsupportedContainer'],
    ['a bundle of Git', '# v2 git bundle\n', 'git', 'UnsupportedContainer'],
    ['a pack of Git', 'PACK\x00\x00\x00\x02', 'git', 'UnsupportedContainer'],
    ['par2', 'PAR2\x00PKT', 'par2', 'UnsupportedContainer'],
    ['a backup of Android', 'ANDROID BACKUP\n5\n1\nnone\n', 'android-backup', 'UnsupportedContainer'],
    ['dump', Buffer.concat([Buffer.alloc(24, 1), Buffer.from('6cea0000', 'hex')]), 'dump', 'UnsupportedContainer'],
    ['a disk of Bochs', 'Bochs Virtual HD Image', 'bochs', 'UnsupportedContainer'],
    ['lz4', '\x04\x22\x4d\x18', 'lz4', 'UnsupportedContainer'],
    ['lzip', 'LZIP\x01', 'lzip', 'UnsupportedContainer'],
    ['ace', '       **ACE**', 'ace', 'UnsupportedContainer'],
    ['gzip 0.5', '\x1f\x9e\x08\x00', 'gzip'],
    ['pbzx', 'pbzx\x00\x00\x00\x00\x01\x00\x00\x00', 'pbzx'],
    ['Intel HEX', ':03000000010203F7\r\n:00000001FF\r\n', 'intel-hex'],
    ['a help file of Visual Studio', 'ITOLITLS\x01\x00\x00\x00', 'hxs'],
    ['a super partition', Buffer.concat([Buffer.alloc(4096), Buffer.from('gDla4\0\0\0')]), 'android-super'],
    ['compress -H', '\x1f\xa0\x00', 'compress-lzh', 'UnsupportedContainer'],
    ['zstd 0.7', '\x27\xb5\x2f\xfd', 'old-zstd', 'UnsupportedContainer'],
    ['zstd 0.1', '\x1e\xb5\x2f\xfd', 'old-zstd', 'UnsupportedContainer'],
    ['lizard', '\x06\x22\x4d\x18', 'lizard', 'UnsupportedContainer'],
    ['Apple Archive', 'AA01\x3c\x00TYP1', 'apple-archive', 'UnsupportedContainer'],
    ['compressed Apple Archive', 'pbze\x00\x00', 'apple-archive', 'UnsupportedContainer'],
    ['flatpak', 'flatpak\x00\x01\x00\x89\xe5', 'flatpak', 'UnsupportedContainer'],
    ['ZIM', 'ZIM\x04\x06\x00', 'zim', 'UnsupportedContainer'],
    ['PMarc', '  -pm2-', 'pmarc', 'UnsupportedContainer'],
    ['StuffIt 5', 'StuffIt (c)1997-2002 Aladdin Systems, Inc.\r\n\x1a\x00', 'stuffit', 'UnsupportedContainer'],
    ['StuffIt X', 'StuffIt!\x00', 'stuffit', 'UnsupportedContainer'],
    ['a disk of the Amiga', 'DOS\x01\x00\x00', 'amiga-disk', 'UnsupportedContainer'],
    ['UC2', 'UC2\x1a\x00', 'old-archive', 'UnsupportedContainer'],
    ['bzip', 'BZ0\x00\x39\x31', 'old-archive', 'UnsupportedContainer'],
    ['FSArchiver', 'FsA0\x12\x34\x56\x78\x00\x10', 'disk-backup', 'UnsupportedContainer'],
    ['ntfsclone', '\x00ntfsclone-image\x0a\x00', 'disk-backup', 'UnsupportedContainer'],
    ['RVZ', 'RVZ\x01\x01\x00\x00\x00', 'compressed-disc', 'UnsupportedContainer'],
    ['DMS', 'DMS!\x00\x00', 'old-archive', 'UnsupportedContainer'],
    ['JAR of ARJ', `${'\x01'.repeat(14)}\x1aJar\x1b\x00`, 'old-archive', 'UnsupportedContainer'],
  ]
  for (const [name, head, format, doubt] of forms) {
    test(name, async () => {
      const bytes = typeof head === 'string' ? Buffer.from(head, 'latin1') : head
      assert.equal(findContainerFormat(bytes)?.name, format)
      assert.deepEqual(await find(bytes), doubt === undefined ? [] : [doubt])
    })
  }
})

describe('a zip', () => {
  const gigabytes = 2 ** 30
  const many = (count: number): ZipMember[] => Array.from({ length: count }, (_, n) => ({ name: `m${n}` }))
  const forms: [name: string, zip: Buffer, doubt?: string][] = [
    ['plain', newZip([{}])],
    ['of no members', newZip([])],
    ['of many members', newZip(many(3000))],
    ['with an encrypted member', newZip([{}, { name: 'b', flags: 1 }]), 'EncryptedContent'],
    ['with an AES member', newZip([{ flags: 1, method: 99 }]), 'EncryptedContent'],
    ['of a huge member', newZip([{ claimedBytes: 1.5 * gigabytes }]), 'ScanLimitExceeded'],
    ['of a member beyond 32 bits', newZip([{ claimedBytes: 9 * gigabytes, wide: true }]), 'ScanLimitExceeded'],
    [
      'of members that are huge together',
      newZip(many(20).map((one) => ({ ...one, claimedBytes: 60_000_000 }))),
      'ScanLimitExceeded',
    ],
    ['without its end', newZip([{}]).subarray(0, -22)],
    ['cut in its end', newZip([{}]).subarray(0, -5)],
  ]
  for (const [name, zip, doubt] of forms) {
    for (const spooled of [false, true]) {
      test(`${name}${spooled ? ', not in memory' : ''}`, async () => {
        assert.deepEqual(await find(zip, { spooled }), doubt === undefined ? [] : [doubt])
      })
    }
  }

  test('whose directory is larger than what is read is a doubt', async () => {
    const end = newZip([]).subarray(-22)
    end.writeUInt32LE(20_000_000, 12)
    const zip = Buffer.concat([newZip([{}]).subarray(0, -22), Buffer.alloc(20_000_000), end])
    assert.deepEqual(await find(zip, { spooled: true }), ['ScanLimitExceeded'])
  })
})

describe('an encrypted list of members is known before unpacking', () => {
  test('7z', async () => {
    assert.deepEqual(await find(await writeArchive(['-t7z', '-ps', '-mhe=on'])), ['EncryptedContent'])
    assert.deepEqual(await find(await writeArchive(['-t7z'])), [])
  })
  test('RAR', async () => {
    assert.deepEqual(await find(newRar4({ encryptedList: true })), ['EncryptedContent'])
    assert.deepEqual(await find(newRar5({ encryptedList: true })), ['EncryptedContent'])
    assert.deepEqual(await find(newRar5({ encryptedFile: true })), ['EncryptedContent'])
  })
  test('a document of Office with a password', async () => {
    assert.deepEqual(await find(newCompound('EncryptedPackage')), ['EncryptedContent'])
    assert.deepEqual(await find(newCompound('WordDocument')), [])
  })
})

test('no bytes make reading a directory throw', async () => {
  const seeds: Buffer[] = [
    newZip([{}, { name: 'b', wide: true }], { end64: true }),
    newZip([{}]),
    newRar4(),
    newRar5(),
    newTar(['a']),
  ]
  seeds.push(newCompound('EncryptedPackage'), await writeArchive(['-t7z', '-ps', '-mhe=on']))
  let state = 12345
  const random = (below: number) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  for (let round = 0; round < 2000; round++) {
    const seed = Buffer.from(seeds[round % seeds.length] ?? '')
    for (let change = 0; change < 1 + random(6); change++)
      seed[random(seed.length)] = [0, 255, random(256)][random(3)] ?? 0
    const cut = random(3) === 0 ? seed.subarray(0, random(seed.length)) : seed
    findContainerFormat(cut)
    await find(cut, { spooled: round % 2 === 0 })
  }
})

/** The header and one sector with the list of streams. */
function newCompound(stream: string): Buffer {
  const head = Buffer.alloc(1024)
  head.write('d0cf11e0a1b11ae1', 'hex')
  head.writeUInt16LE(9, 30)
  head.writeUInt32LE(0, 48)
  head.write(stream, 512, 'utf16le')
  return head
}
