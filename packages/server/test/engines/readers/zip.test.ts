import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findGaps } from '../../../src/engines/unpack/child/reader.ts'
import { zipReader } from '../../../src/engines/unpack/child/readers/zip.ts'
import { member, newZip } from '../unpack-archives.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const read = (content: Buffer) => readWith(zipReader, content)
const other = Buffer.from('another member')
const hidden = newZip([{ name: 'hidden', data: other }])
const holds = (given: { bytes: Buffer }[], bytes: Buffer) => given.some((one) => one.bytes.equals(bytes))

test('a plain zip is read once, ClamAV has seen it, and every byte is accounted for', async () => {
  for (const zip of [newZip([{}]), newZip([{}, { name: 'b', data: other }])]) {
    const { given, doubts, accounted, needsSevenZip } = await read(zip)
    assert.deepEqual(doubts, [])
    assert.ok(given.every(({ isSeen }) => isSeen))
    assert.deepEqual(
      findGaps(accounted, zip.length).filter(({ start, end }) => end > start),
      [],
    )
    assert.equal(needsSevenZip, false)
  }
})

test('ClamAV has not seen the members of a zip with zip64 in headers alone, as Info-ZIP writes to a pipe', async () => {
  const { given, doubts } = await read(
    Buffer.from(
      'UEsDBC0ACAAIAAAAIQAAAAAA//////////8BABQALQEAEAAAAAAAAAAAAAAAAAAAAAAAJcpBCoAwDETRq8xVPErA0ARqCp2peHwrrv7i/QNh8+pO' +
        'Qv4IChOSMKKPal8Vvo3CnXNtqfO/aoDZyvQCUEsHCCXgAj08AAAAAAAAAEQAAAAAAAAAUEsBAh4DLQAIAAgAAAAhACXgAj08AAAARAAAAAEAAAAA' +
        'AAAAAQAAAP/BAAAAAC1QSwUGAAAAAAEAAQAvAAAAhwAAAAAA',
      'base64',
    ),
  )
  assert.deepEqual(doubts, [])
  assert.deepEqual(
    given.map(({ path, isSeen, bytes }) => ({ path, isSeen, length: bytes.length })),
    [{ path: '-', isSeen: false, length: 68 }],
  )
})

test('a deflated member without a size is given up to the end of its data, as gzip and pigz decode it', async () => {
  const sizes = Buffer.alloc(8)
  const zip = newZip([{ data: other, method: 8 }])
  sizes.copy(zip, 18)
  const entryAt = zip.indexOf('PK\x01\x02', 0, 'latin1')
  const withoutSizes = Buffer.from(zip)
  sizes.copy(withoutSizes, entryAt + 20)
  for (const content of [withoutSizes, Buffer.concat([zip.subarray(0, entryAt), newZip([{}])])]) {
    const { given } = await read(content)
    assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(other) && !isSeen))
  }
})

test('a stored member with two sizes is given by both, and ClamAV has not seen it', async () => {
  for (const claimedBytes of [other.length + 1, 5, 10 ** 8]) {
    const { given } = await read(newZip([{ data: other, method: 0, claimedBytes }]))
    assert.ok(given.some(({ bytes, isSeen }) => bytes.equals(other) && !isSeen))
    if (claimedBytes === 5) assert.ok(holds(given, other.subarray(0, 5)))
  }
})

test('a member that begins behind the end of a stream, but within its size, is given', async () => {
  const zip = newZip([{}])
  const stray = newZip([{ data: other }])
  const strayMember = stray.subarray(0, stray.indexOf('PK\x01\x02', 0, 'latin1'))
  const entryAt = zip.indexOf('PK\x01\x02', 0, 'latin1')
  const size = zip.readUInt32LE(18) + strayMember.length
  zip.writeUInt32LE(size, 18)
  zip.writeUInt32LE(size, entryAt + 20)
  zip.writeUInt32LE(entryAt + strayMember.length, zip.length - 6)
  const { given } = await read(Buffer.concat([zip.subarray(0, entryAt), strayMember, zip.subarray(entryAt)]))
  assert.ok(holds(given, other))
})

test('ClamAV has seen the first stream alone of a member in bzip2: 7-Zip reads the zip', async () => {
  const { needsSevenZip } = await read(newZip([{ data: other, method: 12 }]))
  assert.equal(needsSevenZip, true)
})

describe('each reading is given', () => {
  const forms: [name: string, zip: Buffer][] = [
    ['two zips, one behind the other', Buffer.concat([newZip([{}]), hidden])],
    ['two zips, the other way round', Buffer.concat([hidden, newZip([{}])])],
    ['a zip in the comment', newZip([{}], { comment: hidden })],
    ['a member between others that no directory names', withGap()],
    ['content before the zip', Buffer.concat([Buffer.from('ID3 and more'), hidden, newZip([{}])])],
  ]
  for (const [name, zip] of forms) {
    test(name, async () => {
      const { given } = await read(zip)
      assert.ok(holds(given, member) && holds(given, other))
      assert.ok(given.every(({ isSeen }) => !isSeen))
    })
  }
})

describe('a header that contradicts the directory is a doubt', () => {
  const zip = newZip([{}])
  const forms: [name: string, at: number][] = [
    ['flags', 6],
    ['method', 8],
    ['checksum', 14],
    ['packed size', 18],
    ['size', 22],
    ['name', 30],
  ]
  for (const [name, at] of forms) {
    test(name, async () => {
      const changed = Buffer.from(zip)
      changed.writeUInt8((changed[at] ?? 0) ^ (name === 'flags' ? 32 : 1), at)
      assert.deepEqual((await read(changed)).doubts, ['UnsupportedContainer'])
    })
  }
})

test('a zip without its end is read by its headers, and one that is cut in its only member is none', async () => {
  const zip = newZip([{}])
  for (const cut of [zip.length - 22, zip.length - 30]) {
    assert.ok(holds((await read(zip.subarray(0, cut))).given, member), `cut at ${cut}`)
  }
  assert.deepEqual((await read(zip.subarray(0, 40))).accounted, [])
})

test('no bytes make the reader throw', () =>
  fuzzReader(zipReader, [newZip([{}, { name: 'b', wide: true }], { end64: true }), newZip([{}]), withGap()], 600))

/** The members of two zips, and the directory of the first. */
function withGap(): Buffer {
  const first = newZip([{}])
  const directoryAt = first.readUInt32LE(first.length - 6)
  const local = hidden.subarray(0, hidden.readUInt32LE(hidden.length - 6))
  const zip = Buffer.concat([first.subarray(0, directoryAt), local, first.subarray(directoryAt)])
  zip.writeUInt32LE(directoryAt + local.length, zip.length - 6)
  return zip
}

test('an end record that leads nowhere, in content that does not begin as a zip, is no doubt', async () => {
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.set([1, 0, 1, 0], 8)
  end.writeUInt32LE(57, 12)
  end.writeUInt32LE(135, 16)
  const content = Buffer.concat([Buffer.from('Bytes of another format. '.repeat(9)), end, Buffer.alloc(9, 'x')])
  assert.deepEqual((await readWith(zipReader, content)).doubts, [])
})

test('an OpenDocument file whose manifest names encrypted parts is encrypted', async () => {
  const toManifest = (inside: string) => [
    { name: 'content.xml', data: Buffer.from('noise') },
    { name: 'META-INF/manifest.xml', data: Buffer.from(`<manifest:file-entry>${inside}</manifest:file-entry>`) },
  ]
  const encrypted = await readWith(zipReader, newZip(toManifest('<manifest:encryption-data/>')))
  assert.deepEqual(encrypted.doubts, ['EncryptedContent'])
  assert.deepEqual((await readWith(zipReader, newZip(toManifest('')))).doubts, [])
})
