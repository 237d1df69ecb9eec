import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { constants, deflateSync } from 'node:zlib'
import { zlibReader } from '../../../src/engines/unpack/child/readers/compressed-streams.ts'
import { tryReader } from './read-with.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const payload = Buffer.from('A file that pigz or git compressed.')

test('a zlib stream is given, whatever its level, and what follows is not accounted for', async () => {
  for (const level of [1, 6, 9]) {
    const stream = deflateSync(payload, { level })
    const { given, accounted, doubts } = await readWith(zlibReader, Buffer.concat([stream, payload]))
    assert.deepEqual(given[0]?.bytes, payload)
    assert.deepEqual(accounted, [{ start: 0, end: stream.length }])
    assert.deepEqual(doubts, [])
  }
})

test('text that begins like a stream is none', async () => {
  const { accounted, doubts } = await readWith(zlibReader, Buffer.from('hCard is a format for people and companies.'))
  assert.deepEqual([accounted, doubts], [[], []])
})

test('a stream with a wrong checksum is given, and a doubt', async () => {
  const stream = Buffer.concat([deflateSync(payload).subarray(0, -4), Buffer.from('none')])
  const { given, doubts } = await readWith(zlibReader, stream)
  assert.ok(given.some(({ bytes }) => bytes.equals(payload)))
  assert.deepEqual(doubts, ['UnsupportedContainer'])
})

test('what stands before damage in a stream is given', async () => {
  const long = Buffer.concat([payload, payload])
  const stream = deflateSync(long, { strategy: constants.Z_FIXED }).subarray(0, -5)
  const damaged = Buffer.concat([stream, Buffer.from('f10016000a0100745412', 'hex')])
  const { given } = await readWith(zlibReader, damaged)
  assert.ok(given.some(({ bytes }) => bytes.subarray(0, payload.length).equals(payload)))
})

test('a stream that is cut leaves a doubt', async () => {
  const stream = deflateSync(randomBytes(5000))
  assert.deepEqual((await readWith(zlibReader, stream.subarray(0, 3000))).doubts, ['UnsupportedContainer'])
})

test('the header of an object of Git is not given, whatever the length of the object', async () => {
  for (const content of [Buffer.alloc(0), payload, randomBytes(100_000)]) {
    const { given } = await readWith(
      zlibReader,
      deflateSync(Buffer.concat([Buffer.from(`blob ${content.length}\0`), content])),
    )
    assert.deepEqual(
      given.map(({ bytes }) => bytes),
      [content],
    )
  }
})

test('streams with a dictionary and other content are not recognised', async () => {
  const { given } = await tryReader(zlibReader, deflateSync(payload, { dictionary: payload }))
  assert.deepEqual(given, [])
})

test('bad bytes never make the reader throw', () => fuzzReader(zlibReader, [deflateSync(payload)], 300))
