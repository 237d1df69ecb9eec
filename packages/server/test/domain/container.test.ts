import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findContainer, findContainerFormat } from '../../src/domain/content/container.ts'
import {
  newContent,
  newRar4,
  newRar5,
  newTar,
  newZip,
  writeArchive,
  type ZipMember,
} from '../engines/unpack-archives.ts'

const find = async (bytes: Buffer, options = {}) => await findContainer(newContent(bytes, options))

test('what is no container is known at once', () => {
  const others = [
    '',
    'P',
    'PK',
    'MZ\x90',
    '%PDF-1.7',
    'BZhello world',
    '7z',
    'Rar!',
    ']\x00\x00 text',
    '\x60\xea text',
    'hello -lh5- '.repeat(900),
  ]
  for (const text of others) assert.equal(findContainer(newContent(Buffer.from(text, 'latin1'))), undefined, text)
})

describe('formats are told from the head', () => {
  const forms: [string, string | Buffer, string, boolean, boolean][] = [
    ['gzip', '\x1f\x8b\x08\x00', 'gzip', true, true],
    ['bzip2', 'BZh91AY&SY', 'bzip2', false, true],
    ['xz', '\xfd7zXZ\x00', 'xz', true, true],
    ['zstd', '\x28\xb5\x2f\xfd', 'zstd', false, true],
    ['zstd behind a frame to skip', '\x5a\x2a\x4d\x18', 'zstd', false, true],
    ['lzma', '\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00abcd', 'lzma', false, true],
    ['rar', newRar4(), 'rar', false, true],
    ['rar5', newRar5(), 'rar5', false, true],
    ['tar', newTar(['a']), 'tar', true, true],
    ['wim', 'MSWIM\x00\x00\x00', 'wim', false, true],
    ['deb', '!<arch>\ndebian-binary', 'ar', false, true],
    ['lzh', '  -lh5-', 'lzh', true, true],
    ['iso', Buffer.concat([Buffer.alloc(32_769), Buffer.from('CD001')]), 'iso', true, true],
    ['lz4', '\x04\x22\x4d\x18', 'lz4', false, false],
    ['lzip', 'LZIP\x01', 'lzip', false, false],
    ['ace', '       **ACE**', 'ace', false, false],
  ]
  for (const [name, head, format, engineOpens, unpackable] of forms) {
    test(name, async () => {
      const bytes = typeof head === 'string' ? Buffer.from(head, 'latin1') : head
      const doubts = engineOpens || unpackable ? [] : ['UnsupportedContainer']
      assert.deepEqual(await find(bytes), { format, engineOpens, unpackable, doubts })
    })
  }
})

describe('a zip', () => {
  const gigabytes = 2 ** 30
  const many = (count: number): ZipMember[] => Array.from({ length: count }, (_, n) => ({ name: `m${n}` }))
  const forms: [string, Buffer, { engineOpens: boolean; doubts?: string[] }][] = [
    ['plain', newZip([{}]), { engineOpens: true }],
    ['of no members', newZip([]), { engineOpens: true }],
    ['of many members', newZip(many(3000)), { engineOpens: true }],
    ['with a comment', newZip([{}], { comment: Buffer.from('hello') }), { engineOpens: true }],
    ['with 64-bit sizes', newZip([{}, { name: 'b', wide: true }]), { engineOpens: false }],
    ['with a 64-bit end', newZip([{}], { end64: true }), { engineOpens: false }],
    ['with a method that ClamAV does not know', newZip([{}, { name: 'b', method: 14 }]), { engineOpens: false }],
    ['whose member says another method', newZip([{}, { name: 'b', localMethod: 0 }]), { engineOpens: false }],
    [
      'with an encrypted member',
      newZip([{}, { name: 'b', flags: 1 }]),
      { engineOpens: true, doubts: ['EncryptedContent'] },
    ],
    ['with an AES member', newZip([{ flags: 1, method: 99 }]), { engineOpens: false, doubts: ['EncryptedContent'] }],
    [
      'of a huge member',
      newZip([{ claimedBytes: 1.5 * gigabytes }]),
      { engineOpens: true, doubts: ['ScanLimitExceeded'] },
    ],
    [
      'of a member beyond 32 bits',
      newZip([{ claimedBytes: 9 * gigabytes, wide: true }]),
      { engineOpens: false, doubts: ['ScanLimitExceeded'] },
    ],
    [
      'of members that are huge together',
      newZip(many(20).map((one) => ({ ...one, claimedBytes: 60_000_000 }))),
      { engineOpens: true, doubts: ['ScanLimitExceeded'] },
    ],
    ['without its end', newZip([{}]).subarray(0, -22), { engineOpens: false }],
    ['cut in its end', newZip([{}]).subarray(0, -5), { engineOpens: false }],
    ['followed by more', Buffer.concat([newZip([{}]), Buffer.from('more')]), { engineOpens: false }],
    ['whose end counts wrongly', newZip([{}], { lieCount: 3 }), { engineOpens: false }],
    ['with two ends', newZip([{}], { comment: newZip([]) }), { engineOpens: false }],
  ]
  for (const [name, zip, { engineOpens, doubts = [] }] of forms) {
    for (const spooled of [false, true]) {
      test(`${name}${spooled ? ', not in memory' : ''}`, async () => {
        assert.deepEqual(await find(zip, { spooled }), { format: 'zip', engineOpens, unpackable: true, doubts })
      })
    }
  }

  test('whose directory is larger than what is read is a doubt', async () => {
    const end = newZip([]).subarray(-22)
    end.writeUInt32LE(20_000_000, 12)
    const zip = Buffer.concat([newZip([{}]).subarray(0, -22), Buffer.alloc(20_000_000), end])
    assert.deepEqual((await find(zip, { spooled: true }))?.doubts, ['ScanLimitExceeded'])
  })
})

describe('an encrypted list of members is known before unpacking', () => {
  test('7z', async () => {
    assert.deepEqual((await find(await writeArchive(['-t7z', '-ps', '-mhe=on'])))?.doubts, ['EncryptedContent'])
    assert.deepEqual((await find(await writeArchive(['-t7z'])))?.doubts, [])
  })
  test('RAR', async () => {
    assert.deepEqual((await find(newRar4({ encryptedList: true })))?.doubts, ['EncryptedContent'])
    assert.deepEqual((await find(newRar5({ encryptedList: true })))?.doubts, ['EncryptedContent'])
  })
  test('a document of Office with a password', async () => {
    assert.deepEqual((await find(newCompound('EncryptedPackage')))?.doubts, ['EncryptedContent'])
    assert.deepEqual((await find(newCompound('WordDocument')))?.doubts, [])
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
  for (let round = 0; round < 5000; round++) {
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
