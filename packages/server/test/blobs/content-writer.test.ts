import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { makeContentWriter } from '../../src/blobs/content-writer.ts'
import { makeBlockPool } from '../../src/blobs/memory-content.ts'

const memoryBytes = 1024 * 1024
const newWriter = (ownsMemory: boolean) =>
  makeContentWriter({
    memoryBytes,
    ownsMemory,
    pool: makeBlockPool({ blockBytes: memoryBytes + 1, maxFree: 1 }),
    createFile: () => Promise.reject(new Error('All of it fits into memory')),
  })

/** Not the size of what Node cuts small buffers from. */
const memorySize = 60_000

describe('the memory that chunks are part of', () => {
  for (const count of [1, 3]) {
    test(`is given back by a writer that owns it, with ${count} of them`, async () => {
      for (const size of await writeParts(count, { ownsMemory: true })) assert.equal(size, 0)
    })

    test(`is left alone by one that does not, with ${count} of them`, async () => {
      for (const size of await writeParts(count, { ownsMemory: false })) assert.equal(size, memorySize)
    })
  }

  test('is left alone even by an owner where Node may cut small buffers from it', async () => {
    const shared = Buffer.allocUnsafeSlow(Buffer.poolSize).fill('shared')
    const writer = newWriter(true)
    writer.write(shared.subarray(0, 6))
    writer.write(Buffer.from(randomBytes(memorySize)))
    const content = await writer.finish()
    assert.equal(shared.byteLength, Buffer.poolSize)
    assert.equal(content.whole?.subarray(0, 6).toString(), 'shared')
    await content.release()
  })
})

/** Writes all but the beginning of so many memories, looks whether the content is right, and tells how large they are then. */
async function writeParts(count: number, { ownsMemory }: { ownsMemory: boolean }): Promise<number[]> {
  const memories = Array.from({ length: count }, () => Buffer.from(randomBytes(memorySize)))
  const parts = memories.map((memory) => memory.subarray(144))
  const clear = Buffer.concat(parts)
  const writer = newWriter(ownsMemory)
  for (const part of parts) writer.write(part)
  const content = await writer.finish()
  assert.ok(content.whole?.equals(clear))
  await content.release()
  return memories.map(({ byteLength }) => byteLength)
}
