import assert from 'node:assert/strict'
import { hash, randomBytes, randomInt } from 'node:crypto'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { openContentStore } from '../../src/blobs/content-store.ts'
import { makeBlockPool, makeMemoryBudget, makeRecentHeads } from '../../src/blobs/memory-content.ts'
import type { ContentWriter } from '../../src/domain/ports/content-store.ts'
import { type DigestThreads, makeDigestThreads } from '../../src/runtime/digest-threads.ts'
import { newTestDir } from './test-dir.ts'

const blockBytes = 256 * 1024
const clear = randomBytes(6 * blockBytes)

function openStore(t: TestContext, blocks: number) {
  const dir = join(newTestDir(t), 'content')
  const memory = makeMemoryBudget({ maxBytes: blocks * blockBytes })
  const threads = makeDigestThreads()
  const store = openContentStore({ dir, memory, threads, recentHeads: makeRecentHeads({ entries: 10 }) })
  t.after(async () => {
    await store.close()
    await threads.close()
  })
  const countFiles = () =>
    existsSync(dir) ? readdirSync(dir, { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).length : 0
  return { store, memory, threads, countFiles }
}

/** Writes a part of the test content in chunks, each in memory of its own, as they come from a connection. */
async function write(writer: ContentWriter, bytes: number, nextChunk: () => number) {
  for (let at = 0; at < bytes; ) {
    const length = Math.min(nextChunk(), bytes - at)
    const chunk = Buffer.allocUnsafeSlow(length)
    clear.copy(chunk, 0, at, at + length)
    await writer.write(chunk)
    at += length
  }
}

/** Returns a function that tells whether the next content has its SHA-1 computed in a thread. */
function watchSha1(threads: DigestThreads) {
  const open = threads.open
  let computesSha1: boolean | undefined
  threads.open = () => {
    threads.open = open
    const digest = open()
    return {
      drop: digest.drop,
      update(pieces, options) {
        computesSha1 ??= options.wantsSha1
        return digest.update(pieces, options)
      },
    }
  }
  return () => computesSha1
}

describe('large content', () => {
  test('that cannot be stored fails for whoever waits, and for nobody else', async (t) => {
    const dir = join(newTestDir(t), 'content')
    writeFileSync(dir, 'not a directory')
    const store = openContentStore({ dir, memory: makeMemoryBudget({ maxBytes: 0 }) })
    t.after(() => store.close().catch(() => {}))
    const writer = store.newWriter()
    // A form that turns out to be malformed leaves these promises alone; an unhandled rejection fails the test.
    for (let n = 0; n < 8; n++) {
      void writer.write(Buffer.alloc(blockBytes))
      await new Promise(setImmediate)
    }
    await assert.rejects(writer.finish())
    void writer.write(Buffer.alloc(blockBytes))
    await writer.abort()
    await new Promise(setImmediate)
  })

  const sizes = [-1, 0, 1].flatMap((by) => [1, 2, 4].map((blocks) => blocks * blockBytes + by))
  for (const budget of [0, 1, 2, 3]) {
    test(`with memory for ${budget} blocks comes back from memory or a file, cut anywhere`, async (t) => {
      const { store, memory, countFiles } = openStore(t, budget)
      const chunkings = [() => 65_536, () => blockBytes, () => randomInt(1, 50_000)]
      for (const bytes of [...sizes, randomInt(blockBytes, 5 * blockBytes)]) {
        for (const nextChunk of chunkings) {
          const writer = store.newWriter()
          await write(writer, bytes, nextChunk)
          const content = await writer.finish()
          const expected = clear.subarray(0, bytes)
          assert.equal(content.isInMemory, Math.ceil(bytes / blockBytes) <= budget, `${bytes} bytes`)
          assert.deepEqual([content.sha1, content.sha256], [hash('sha1', expected), hash('sha256', expected)])
          assert.ok((await buffer(content.read())).equals(expected))
          const [from, to] = [randomInt(bytes), randomInt(bytes)].toSorted((a, b) => a - b) as [number, number]
          assert.ok((await buffer(content.read(from, to))).equals(expected.subarray(from, to)), `${from} to ${to}`)
          await content.release()
          assert.equal(memory.countBytes(), 0)
        }
      }
      assert.equal(countFiles(), 0)
    })
  }

  describe('that begins like recent content', () => {
    const bytes = 3 * blockBytes + 1
    /** Receives content, checks its hashes, and tells whether its SHA-1 was computed while it arrived. */
    async function receive(
      { store, threads }: ReturnType<typeof openStore>,
      { length = bytes, accountId = 'a', expectedBytes = bytes, isInMemory = true } = {},
    ) {
      const computesSha1 = watchSha1(threads)
      const writer = store.newWriter({ accountId, expectedBytes })
      await write(writer, length, () => 65_536)
      const content = await writer.finish()
      const expected = clear.subarray(0, length)
      assert.deepEqual([content.sha1, content.sha256], [hash('sha1', expected), hash('sha256', expected)])
      assert.equal(content.isInMemory, isInMemory)
      await content.release()
      return computesSha1()
    }

    test('is hashed with SHA-256 alone if account and expected size are the same, until its end differs', async (t) => {
      const opened = openStore(t, 8)
      assert.equal(await receive(opened), true)
      assert.equal(await receive(opened), false)
      assert.equal(await receive(opened), false)
      assert.equal(await receive(opened, { accountId: 'b' }), true)
      assert.equal(await receive(opened, { expectedBytes: bytes + 1 }), true)
      const length = bytes + 1
      assert.equal(await receive(opened, { length }), false)
      assert.equal(await receive(opened, { length }), true)
      assert.equal(await receive(opened), true)
    })

    test('gets its SHA-1 while it arrives when it goes to a file from its first byte', async (t) => {
      const opened = openStore(t, 0)
      for (let n = 0; n < 3; n++) assert.equal(await receive(opened, { isInMemory: false }), true)
    })

    test('gets the right hashes if it moves to a file after it was taken for a repeat', async (t) => {
      const opened = openStore(t, 6)
      assert.equal(await receive(opened), true)
      assert.equal(await receive(opened, { length: clear.length, isInMemory: false }), false)
    })
  })

  test('that is aborted at any byte returns its memory and leaves no file', async (t) => {
    const { store, memory, countFiles } = openStore(t, 3)
    for (let n = 0; n < 40; n++) {
      const writer = store.newWriter({ accountId: 'a' })
      const bytes = randomInt(clear.length)
      const writing = write(writer, bytes, () => 65_536)
      // A writer whose caller goes away is aborted while its writes run, or between them.
      if (n % 2 === 0) await writing
      const finishing = n % 4 === 0 ? writer.finish().catch(() => {}) : undefined
      await writer.abort()
      await Promise.all([writing, finishing])
      await writer.abort()
      assert.equal(memory.countBytes(), 0, `${bytes} bytes`)
      assert.equal(memory.countAccounts(), 0)
    }
    assert.equal(countFiles(), 0)
  })

  test('fails when its thread ends, and returns its memory', async (t) => {
    const { memory, threads: broken, store: brokenStore } = openStore(t, 8)
    const writer = brokenStore.newWriter()
    await write(writer, 3 * blockBytes, () => 65_536)
    await broken.close()
    await assert.rejects(async () => {
      await write(writer, 2 * blockBytes, () => 65_536)
      await writer.finish()
    })
    await writer.abort()
    assert.equal(memory.countBytes(), 0)
  })
})

test('an account leaves a part of the memory to others', () => {
  const memory = makeMemoryBudget({ maxBytes: 1000 })
  assert.equal(memory.take(750, 'a'), true)
  assert.equal(memory.take(1, 'a'), false)
  assert.equal(memory.take(200, 'b'), true)
  assert.equal(memory.take(50, undefined), true)
  assert.equal(memory.take(1, 'b'), false, 'the whole is taken')
  memory.release(750, 'a')
  memory.release(200, 'b')
  assert.equal(memory.countAccounts(), 0)
  assert.equal(memory.countBytes(), 50)
})

test('a pool returns the memory of blocks beyond those that it keeps', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const pool = makeBlockPool({ blockBytes: 1000, minFree: 2, maxFree: 4 })
  const blocks = Array.from({ length: 6 }, () => pool.take())
  for (const block of blocks) pool.release(block.subarray(0, 10))
  assert.equal(pool.countFree(), 4)
  assert.equal(blocks.filter(({ length }) => length === 0).length, 2)
  t.mock.timers.tick(60_000)
  assert.equal(pool.countFree(), 2)
  assert.equal(blocks.filter(({ length }) => length === 0).length, 4)
})
