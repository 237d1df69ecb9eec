import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { canHoldContent, isLzmaStream } from '../../../src/domain/content/container.ts'
import { lzmaReader } from '../../../src/engines/unpack/child/readers/compressed-streams.ts'
import { lacks, run } from './read-with.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const text = Buffer.from(
  Array.from({ length: 400 }, (_, n) => `Line ${n} of a text that repeats itself, ${n * n} times.\n`).join(''),
)
const needsXz = { skip: lacks('xz') }

/** A stream with the given properties and its size in the head, without a mark at its end. */
function newLzma(data: Buffer, options = 'lc=0,lp=0,pb=0,dict=64KiB'): Buffer {
  const stream = Buffer.from(run('xz', ['--format=lzma', `--lzma1=${options}`, '-c'], { input: data }))
  stream.writeBigUInt64LE(BigInt(data.length), 5)
  return stream
}

test('streams of each kind of properties are decoded', needsXz, async () => {
  for (const options of ['lc=0,lp=0,pb=0', 'lc=0,lp=4,pb=1', 'lc=1,lp=1,pb=3', 'lc=4,lp=0,pb=4', 'lc=0,lp=0,pb=4']) {
    const stream = newLzma(text, `${options},dict=64KiB`)
    assert.ok(canHoldContent(stream.subarray(0, 65_536)), options)
    const { given, doubts } = await readWith(lzmaReader, stream)
    assert.ok(given[0]?.bytes.equals(text), options)
    assert.deepEqual(doubts, [])
  }
})

test('a short stream and one behind which bytes follow are decoded', needsXz, async () => {
  const short = Buffer.from('Only a few words are in here.')
  assert.ok((await readWith(lzmaReader, newLzma(short))).given[0]?.bytes.equals(short))
  const stream = newLzma(text)
  const { given, accounted } = await readWith(
    lzmaReader,
    Buffer.concat([stream, Buffer.from('More bytes. '.repeat(9))]),
  )
  assert.ok(given[0]?.bytes.equals(text))
  assert.ok((accounted[0]?.end ?? 0) <= stream.length)
})

test('a long output is decoded with a window that is smaller', needsXz, async () => {
  const numbers = Buffer.from(
    Array.from(
      { length: 40_000 },
      (_, n) => `${n}
`,
    ).join(''),
  )
  const { given, doubts } = await readWith(lzmaReader, newLzma(numbers, 'lc=2,lp=1,pb=1,dict=4KiB'))
  assert.ok(given[0]?.bytes.equals(numbers))
  assert.deepEqual(doubts, [])
})

test('a stream that is cut is a doubt, and its start is given', needsXz, async () => {
  const { given, doubts } = await readWith(lzmaReader, newLzma(text).subarray(0, 900))
  assert.deepEqual(doubts, ['UnsupportedContainer'])
  assert.ok((given[0]?.bytes.length ?? 0) > 500)
})

test('programs, zeros and other sparse content are no streams', () => {
  assert.equal(isLzmaStream(readFileSync(process.execPath).subarray(0, 65_536)), false)
  for (let first = 0; first < 225; first += 3) {
    const sparse = Buffer.alloc(4096)
    sparse[0] = first
    sparse[5] = 200
    assert.equal(isLzmaStream(sparse), false)
    // A table of small numbers, as many formats begin with.
    for (let at = 16; at < sparse.length; at += 4) sparse.writeUInt32LE((at * first) % 1000, at)
    assert.equal(isLzmaStream(sparse), false)
  }
})

test('random bytes behind a possible head are no stream', () => {
  let state = 1
  function random(): number {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return state >>> 24
  }
  for (let round = 0; round < 225; round++) {
    const bytes = Buffer.from(Array.from({ length: 400 }, random))
    bytes[0] = round
    bytes.writeBigUInt64LE(BigInt(round + 50), 5)
    bytes.writeUInt16BE(round % 0x80, 13)
    assert.equal(isLzmaStream(bytes), false)
  }
})

test('changed streams never throw', needsXz, async () => {
  await fuzzReader(lzmaReader, [newLzma(text), newLzma(text, 'lc=4,lp=0,pb=4')], 300)
})
