import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { makeBlockPool } from '../../src/blobs/block-pool.ts'
import { makeContentWriter } from '../../src/blobs/content-writer.ts'

const memoryBytes = 1024 * 1024
const newWriter = (ownsMemory: boolean) =>
  makeContentWriter({
    memoryBytes,
    ownsMemory,
    pool: makeBlockPool({ blockBytes: memoryBytes + 1, maxFree: 1 }),
    createFile: () => Promise.reject(new Error('All of it fits into memory')),
  })

describe('the memory that chunks are part of', () => {
  for (const ownsMemory of [true, false]) {
    for (const count of [1, 3]) {
      test(`is ${ownsMemory ? 'given back where' : 'left alone unless'} nobody else has any of it, ${count} chunks`, async () => {
        const memories = Array.from({ length: count }, () => Buffer.from(randomBytes(60_000)))
        const chunks = memories.map((memory) => memory.subarray(144))
        const clear = Buffer.concat(chunks)
        const writer = newWriter(ownsMemory)
        for (const chunk of chunks) writer.write(chunk)
        const content = await writer.finish()
        for (const { byteLength } of memories) assert.equal(byteLength, ownsMemory ? 0 : 60_000)
        assert.ok(content.whole?.equals(clear))
        await content.release()
      })
    }
  }

  test('is left alone where Node cuts small buffers from it', async () => {
    const [neighbour, first] = [Buffer.from('neighbour'), Buffer.from('first')]
    assert.equal(first.buffer, neighbour.buffer)
    const writer = newWriter(true)
    writer.write(first)
    writer.write(randomBytes(60_000))
    const content = await writer.finish()
    assert.equal(neighbour.toString(), 'neighbour')
    assert.equal(content.whole?.subarray(0, 5).toString(), 'first')
    await content.release()
  })
})
