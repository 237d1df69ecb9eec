import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateRawSync, gzipSync } from 'node:zlib'
import { findContainerFormat } from '../../../src/domain/content/container-formats.ts'
import { gzipReader } from '../../../src/engines/unpack/child/readers/gzip.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const payload = Buffer.from('The payload that programs extract. '.repeat(5))
const text = Buffer.from('An ordinary text. ')

/** A part with the header fields that the flags name. */
function newPart(data: Buffer, flags: number, fields: Buffer): Buffer {
  const trailer = gzipSync(data).subarray(-8)
  return Buffer.concat([Buffer.from([0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3]), fields, deflateRawSync(data), trailer])
}

test('a plain file leaves no doubt, and all of it is accounted for', async () => {
  for (const gzip of [gzipSync(payload), newPart(payload, 8, Buffer.from('name\0'))]) {
    const { given, doubts, accounted } = await readWith(gzipReader, gzip)
    assert.deepEqual(doubts, [])
    assert.equal(given.length, 1)
    assert.ok(given[0]?.bytes.equals(payload))
    assert.equal(given[0]?.isSeen, true)
    assert.equal(accounted.at(-1)?.end, gzip.length)
  }
})

test('all header fields are skipped', async () => {
  const fields = Buffer.concat([Buffer.from([4, 0, 1, 2, 3, 4]), Buffer.from('name\0comment\0'), Buffer.alloc(2)])
  const { given, doubts } = await readWith(gzipReader, newPart(payload, 31, fields))
  assert.deepEqual(doubts, [])
  assert.deepEqual(given, [{ path: 'name', bytes: payload, isSeen: false }])
})

test('several parts are given each alone and as one file', async () => {
  const { given, doubts } = await readWith(gzipReader, Buffer.concat([gzipSync(text), gzipSync(payload)]))
  assert.deepEqual(doubts, [])
  assert.deepEqual(
    given.map(({ bytes }) => bytes),
    [text, payload, Buffer.concat([text, payload])],
  )
})

test('a part with one damaged byte of its mark is a doubt: The Unarchiver reads on', async () => {
  const damaged = gzipSync(payload).fill(0xa5, 0, 1)
  const { doubts } = await readWith(gzipReader, Buffer.concat([gzipSync(text), damaged]))
  assert.deepEqual(doubts, ['UnsupportedContainer'])
})

test('many parts are given as one file', async () => {
  const { given, doubts } = await readWith(gzipReader, Buffer.concat(Array(100).fill(gzipSync(text))))
  assert.deepEqual(doubts, [])
  assert.equal(given.length, 17)
  assert.equal(given.at(-1)?.bytes.length, 100 * text.length)
})

test('what stands before zeros is given as one file, and everything as one file', async () => {
  const gzip = Buffer.concat([gzipSync(text), gzipSync(payload), Buffer.alloc(100), gzipSync(text)])
  const { given, doubts } = await readWith(gzipReader, gzip)
  assert.deepEqual(doubts, [])
  assert.deepEqual(
    given.map(({ bytes }) => bytes),
    [text, payload, Buffer.concat([text, payload]), text, Buffer.concat([text, payload, text])],
  )
  const padded = await readWith(gzipReader, Buffer.concat([gzipSync(text), Buffer.alloc(100)]))
  assert.deepEqual(padded.doubts, [])
})

test('parts with the signature of gzip 0.5 are read like others, and ClamAV has not seen them', async () => {
  const old = Buffer.from(gzipSync(payload))
  old[1] = 0x9e
  assert.equal(findContainerFormat(old)?.name, 'gzip')
  const { given, doubts } = await readWith(gzipReader, old)
  assert.deepEqual(doubts, [])
  assert.deepEqual(given, [{ path: '', bytes: payload, isSeen: false }])
  const both = await readWith(gzipReader, Buffer.concat([gzipSync(text), old]))
  assert.ok(both.given.some(({ bytes }) => bytes.equals(Buffer.concat([text, payload]))))
})

test('another stream behind the last part is a doubt: gzip and zstd append its content', async () => {
  for (const stream of [
    '1f9d90680a',
    '1fa0000000',
    'fd377a585a00',
    '28b52ffd2400',
    '04224d186440',
    '1f1e0000004408020141',
  ]) {
    const { doubts } = await readWith(gzipReader, Buffer.concat([gzipSync(text), Buffer.from(stream, 'hex')]))
    assert.deepEqual(doubts, ['UnsupportedContainer'], stream)
  }
})

test('bytes behind the last part are not accounted for', async () => {
  const gzip = gzipSync(text)
  const { accounted, doubts } = await readWith(gzipReader, Buffer.concat([gzip, payload]))
  assert.deepEqual(doubts, [])
  assert.equal(accounted.at(-1)?.end, gzip.length)
})

test('a file that is cut or damaged leaves a doubt', async () => {
  const noise = Buffer.from(Array.from({ length: 20_000 }, (_, n) => ((n * n * 31) >>> 3) & 255))
  const gzip = gzipSync(noise)
  for (const cut of [gzip.length - 1, gzip.length - 9, gzip.length >> 1, 12, 5]) {
    const { doubts } = await readWith(gzipReader, gzip.subarray(0, cut))
    assert.deepEqual(doubts, ['UnsupportedContainer'], `cut at ${cut}`)
  }
  const { given } = await readWith(gzipReader, gzip.subarray(0, gzip.length - 9))
  assert.ok((given[0]?.bytes.length ?? 0) > 0)
  gzip.writeUInt32LE(0, gzip.length - 8)
  assert.deepEqual((await readWith(gzipReader, gzip)).doubts, ['UnsupportedContainer'])
})

test('changed bytes never throw', async () => {
  const fields = Buffer.from('name\0comment\0\0\0')
  await fuzzReader(gzipReader, [Buffer.concat([gzipSync(text), newPart(payload, 26, fields), gzipSync(text)])], 400)
})

test('formats without a reader are recognised', () => {
  const asar = Buffer.concat([Buffer.from('04000000240000002000000019000000', 'hex'), Buffer.from('{"files":{}}')])
  const heads: [string, Buffer][] = [
    ['asar', asar],
    ['warc', Buffer.from('WARC/1.0\r\nWARC-Type: response\r\n')],
    ['pipable-wim', Buffer.from('WLPWM\0\0\0')],
  ]
  for (const [name, head] of heads) assert.equal(findContainerFormat(head)?.name, name)
  assert.equal(findContainerFormat(Buffer.from('04000000240000002000000019000000', 'hex')), undefined)
})
