import assert from 'node:assert/strict'
import { test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import { zstdFramesReader } from '../../../src/engines/unpack/child/readers/compressed-streams.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const text = Buffer.from('A text of several blocks and frames. '.repeat(9000))
const hidden = Buffer.from('Bytes that programs pass over.')

function newSkippable(content: Buffer, number = 0): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32LE(0x184d_2a50 + number)
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content])
}

test('the bytes of skippable frames are given, wherever they stand', async () => {
  const frame = zstdCompressSync(text)
  for (const file of [
    Buffer.concat([newSkippable(hidden), frame]),
    Buffer.concat([frame, newSkippable(Buffer.alloc(4), 5), frame, newSkippable(hidden, 15)]),
  ]) {
    const { given, doubts, needsSevenZip } = await readWith(zstdFramesReader, file)
    assert.deepEqual(
      given.map(({ bytes }) => bytes.toString()),
      [hidden.toString()],
    )
    assert.deepEqual(doubts, [])
    assert.equal(needsSevenZip, true)
  }
})

test('changed files never throw', async () => {
  const file = Buffer.concat([newSkippable(hidden), zstdCompressSync(text), newSkippable(hidden)])
  await fuzzReader(zstdFramesReader, [file], 500)
})
