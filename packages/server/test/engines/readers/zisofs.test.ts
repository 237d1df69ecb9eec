import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { findContainerFormat } from '../../../src/domain/content/container-formats.ts'
import { zisofsReader } from '../../../src/engines/unpack/child/readers/compressed-streams.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const blockBytes = 32_768
const payload = Buffer.from(Array.from({ length: 3 * blockBytes + 1000 }, (_, n) => (n * n * 31) >>> 5))

function newZisofs(content: Buffer, { blocks = [] as Buffer[] } = {}): Buffer {
  const count = Math.ceil(content.length / blockBytes)
  const packed =
    blocks.length > 0
      ? blocks
      : Array.from({ length: count }, (_, n) => deflateSync(content.subarray(n * blockBytes, (n + 1) * blockBytes)))
  const table = Buffer.alloc(16 + 4 * (count + 1))
  Buffer.from('37e45396c9dbd607', 'hex').copy(table)
  table.writeUInt32LE(content.length, 8)
  table.set([4, 15], 12)
  let at = table.length
  for (let n = 0; n <= count; n++) {
    table.writeUInt32LE(at, 16 + 4 * n)
    at += packed[n]?.length ?? 0
  }
  return Buffer.concat([table, ...packed])
}

test('the blocks are given as one file', async () => {
  for (const content of [payload, payload.subarray(0, 10), payload.subarray(0, blockBytes), Buffer.alloc(0)]) {
    const bytes = newZisofs(content)
    assert.equal(findContainerFormat(bytes)?.name, 'zisofs')
    const { given, doubts, accounted } = await readWith(zisofsReader, bytes)
    assert.deepEqual(doubts, [])
    assert.ok(given[0]?.bytes.equals(content))
    assert.deepEqual(accounted, [{ start: 0, end: bytes.length }])
  }
})

test('a block without bytes holds zeros', async () => {
  const blocks = [Buffer.alloc(0), deflateSync(Buffer.from('end'))]
  const content = Buffer.concat([Buffer.alloc(blockBytes), Buffer.from('end')])
  const { given, doubts } = await readWith(zisofsReader, newZisofs(content, { blocks }))
  assert.deepEqual(doubts, [])
  assert.ok(given[0]?.bytes.equals(content))
})

test('a file that is damaged, cut, or has more than its blocks leaves a doubt', async () => {
  const whole = newZisofs(payload)
  const damaged = Buffer.from(whole)
  damaged[whole.length - 100] = (damaged[whole.length - 100] as number) ^ 1
  const odd = Buffer.from(whole)
  odd[13] = 30
  const moved = Buffer.from(whole)
  moved.writeUInt32LE(16, 16)
  const broken = [damaged, odd, moved, whole.subarray(0, -10), whole.subarray(0, 20), Buffer.concat([whole, payload])]
  for (const bytes of broken) {
    assert.deepEqual((await readWith(zisofsReader, bytes)).doubts, ['UnsupportedContainer'])
  }
})

test('bad bytes never make the reader throw', () =>
  fuzzReader(zisofsReader, [newZisofs(payload.subarray(0, 40_000))], 200))
