import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { pbzxReader } from '../../../src/engines/unpack/child/readers/apple.ts'
import { lacks, run } from './read-with.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const first = Buffer.from('The first chunk of a package. '.repeat(20))
const second = Buffer.from('The second one.')
const skip = lacks('xz')
const compress = (bytes: Buffer) => run('xz', ['-c'], { input: bytes })
const decompress = (bytes: Buffer) => run('xz', ['-dc'], { input: bytes })

type Chunk = { data: Buffer; isFollowed?: boolean; claimedBytes?: number }

function newPbzx(...chunks: Chunk[]): Buffer {
  const parts = chunks.flatMap(({ data, isFollowed, claimedBytes = data.length }, at) => {
    const head = Buffer.alloc(16)
    head.writeBigUInt64BE((isFollowed ?? at < chunks.length - 1) ? 1n << 24n : 15n)
    head.writeBigUInt64BE(BigInt(claimedBytes), 8)
    return [head, data]
  })
  return Buffer.concat([Buffer.from('pbzx'), Buffer.from('0000000001000000', 'hex'), ...parts])
}

test('the chunks are given as one file of XZ, plain ones too', { skip }, async () => {
  const plain = randomBytes(150_000)
  for (const chunks of [
    [compress(first)],
    [compress(first), compress(second)],
    [first, compress(second)],
    [compress(first), plain, second],
  ]) {
    const pbzx = newPbzx(...chunks.map((data) => ({ data })))
    const { given, doubts, accounted } = await readWith(pbzxReader, pbzx)
    assert.deepEqual(doubts, [])
    assert.deepEqual(accounted, [{ start: 0, end: pbzx.length }])
    const content = chunks.map((chunk) => (chunk[0] === 0xfd ? decompress(chunk) : chunk))
    assert.ok(decompress(given[0]?.bytes ?? Buffer.alloc(0)).equals(Buffer.concat(content)))
  }
})

test('a stream that is cut, or ends before its end, leaves a doubt', { skip }, async () => {
  const chunk = { data: compress(second) }
  const whole = newPbzx({ data: compress(first) }, chunk)
  for (const broken of [
    whole.subarray(0, -1),
    whole.subarray(0, 20),
    newPbzx({ data: compress(first), isFollowed: false }, chunk),
    newPbzx({ data: second, claimedBytes: 2 ** 40 }),
    newPbzx({ data: Buffer.alloc(0) }, chunk),
  ]) {
    assert.deepEqual((await readWith(pbzxReader, broken)).doubts, ['UnsupportedContainer'])
  }
})

test('bad bytes never make the reader throw', () =>
  fuzzReader(pbzxReader, [newPbzx({ data: first }, { data: second })], 300))
