import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freeBuffer, returnUnusedMemory } from '../../src/runtime/memory.ts'

const [count, bytes] = [1000, 64 * 1024]

test('memory between blocks in use is returned to the system', () => {
  const blocks = Array.from({ length: count }, () => Buffer.allocUnsafeSlow(bytes).fill(1))
  const kept = blocks.filter((_, i) => i % 10 === 0)
  for (const block of blocks) if (!kept.includes(block)) freeBuffer(block)
  const before = process.memoryUsage.rss()
  returnUnusedMemory()
  const returned = before - process.memoryUsage.rss()
  assert.ok(returned > (count * bytes) / 2, `${returned} bytes`)
  assert.ok(kept.every((block) => block.length === bytes && block[0] === 1))
})
