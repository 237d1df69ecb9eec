import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import type { ScanKind } from '@assay/contract'
import { makeContentWriter, openContentStore } from '../../src/blobs/content-store.ts'
import { openDiskSpace } from '../../src/blobs/disk-space.ts'
import { makeDiskJobContents } from '../../src/blobs/job-contents.ts'
import { openMasterKey } from '../../src/blobs/master-key.ts'
import { makeBlockPool, makeMemoryBudget } from '../../src/blobs/memory-content.ts'
import { Problem } from '../../src/domain/problem.ts'
import { makeDigestThreads } from '../../src/runtime/digest-threads.ts'
import { newTestDir } from './test-dir.ts'

const master = openMasterKey(randomBytes(32), '/nowhere')
const isStorageFull = (error: unknown) => error instanceof Problem && error.refusal.kind === 'storage-full'

test('uploads share a memory budget: content beyond it goes to a file, and a release returns its share', async (t) => {
  const dir = join(newTestDir(t), 'content')
  const memory = makeMemoryBudget({ maxBytes: 250_000 })
  const store = openContentStore({ dir, memory })
  const bytes = randomBytes(100_000)
  const put = async () => {
    const writer = store.newWriter()
    // In two chunks: the first may fit when the second does not.
    await writer.write(Buffer.from(bytes.subarray(0, 60_000)))
    await writer.write(Buffer.from(bytes.subarray(60_000)))
    return writer.finish()
  }
  const contents = [await put(), await put(), await put(), await put()]
  assert.deepEqual(
    contents.map(({ isInMemory }) => isInMemory),
    [true, true, false, false],
  )
  for (const content of contents) assert.deepEqual(await buffer(content.read()), bytes)
  assert.equal(memory.countBytes(), 200_000)
  for (const content of contents) await content.release()
  assert.equal(memory.countBytes(), 0)
  assert.deepEqual(listFiles(dir), [])
})

test('pictures take a part of the memory, and all of it while the disk is full', async (t) => {
  const dir = newTestDir(t)
  const [megabyte, reserve] = [1_000_000, { bytes: 0 }]
  const memory = makeMemoryBudget({ maxBytes: 8 * megabyte })
  const disk = await openDiskSpace({
    dir,
    get reserveBytes() {
      return reserve.bytes
    },
  })
  const pictureMemory = makeMemoryBudget({ maxBytes: 2 * megabyte, within: memory })
  const store = openContentStore({ dir: join(dir, 'content'), memory, pictureMemory, disk })
  t.after(store.close)
  const put = async (kind: ScanKind) => {
    const writer = store.newWriter({ kind, expectedBytes: megabyte })
    await writer.write(randomBytes(megabyte))
    return writer.finish()
  }
  const contents = [await put('nsfw_image'), await put('nsfw_image'), await put('malware')]
  reserve.bytes = 2 ** 60
  contents.push(await put('nsfw_image'))
  assert.deepEqual(
    contents.map(({ isInMemory }) => isInMemory),
    [true, false, true, true],
  )
  for (const content of contents) await content.release()
  assert.deepEqual([memory.countBytes(), pictureMemory.countBytes()], [0, 0])
})

test('an aborted writer returns its memory, before and after its content went to a file', async (t) => {
  const memory = makeMemoryBudget({ maxBytes: 100_000 })
  const store = openContentStore({ dir: join(newTestDir(t), 'content'), memory })
  for (const bytes of [1000, 70_000, 200_000]) {
    const writer = store.newWriter()
    for (let n = 0; n < 2; n++) await writer.write(randomBytes(bytes))
    await writer.abort()
    assert.equal(memory.countBytes(), 0)
  }
})

test('the content of jobs stays within its budget, to which a removal returns its size', async (t) => {
  const { contents, dir } = await openJobs(t, { budgetBytes: 1_000_000 })
  const put = async (bytes: number) => {
    const writer = contents.newWriter()
    try {
      await writer.write(randomBytes(bytes))
      const content = await writer.finish()
      return await content.persist({ accountId: null, scanId: 'scan' })
    } catch (error) {
      await writer.abort()
      throw error
    }
  }
  const first = await put(700_000)
  await assert.rejects(put(700_000), isStorageFull)
  assert.equal(readdirSync(dir).length, 2, 'the first one, and the name of the store')
  await contents.remove(first)
  await put(700_000)
})

test('no upload begins while the free space is below the reserve', async (t) => {
  const { bavail, bsize } = statfsSync(newTestDir(t))
  const { contents } = await openJobs(t, { reserveBytes: 2 * bavail * bsize })
  assert.throws(() => contents.newWriter(), isStorageFull)
})

async function openJobs(t: TestContext, { reserveBytes = 0, budgetBytes = 1e15 }) {
  const dir = join(newTestDir(t), 'jobs')
  mkdirSync(dir)
  const disk = await openDiskSpace({ dir, reserveBytes, budget: { dir, bytes: budgetBytes } })
  return { dir, contents: makeDiskJobContents({ dir, master, disk }) }
}

const listFiles = (dir: string) =>
  readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())

test('the free space is known also when the directory does not exist yet', async (t) => {
  const disk = await openDiskSpace({ dir: join(newTestDir(t), 'not', 'there'), reserveBytes: 0 })
  assert(disk.countFree() > 0)
})

const blockBytes = 256 * 1024
const newWriter = (ownsMemory: boolean) =>
  makeContentWriter({
    ownsMemory,
    keepsLarge: true,
    pool: makeBlockPool({ blockBytes, minFree: 1, maxFree: 1 }),
    memory: makeMemoryBudget({ maxBytes: 64 * blockBytes }),
    threads: makeDigestThreads(),
    createFile: () => Promise.reject(new Error('The content fits into memory')),
  })

/** Not the size of the pool that Node takes small buffers from. */
const memorySize = 60_000

describe('the memory that chunks are part of', () => {
  for (const count of [1, 3, 9]) {
    test(`is freed by a writer that owns it, with ${count} chunks`, async () => {
      for (const size of await writeParts(count, { ownsMemory: true })) assert.equal(size, 0)
    })

    test(`is kept by a writer that does not own it, with ${count} chunks`, async () => {
      for (const size of await writeParts(count, { ownsMemory: false })) assert.equal(size, memorySize)
    })
  }

  test('is kept even by an owner when it may be the pool that Node takes small buffers from', async () => {
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

/** Writes a part of each of `count` buffers, checks the content, and returns the sizes of the buffers afterwards. */
async function writeParts(count: number, { ownsMemory }: { ownsMemory: boolean }): Promise<number[]> {
  const memories = Array.from({ length: count }, () => Buffer.from(randomBytes(memorySize)))
  const parts = memories.map((memory) => memory.subarray(144))
  const clear = Buffer.concat(parts)
  const writer = newWriter(ownsMemory)
  for (const part of parts) writer.write(part)
  const content = await writer.finish()
  assert.ok((await buffer(content.read())).equals(clear))
  await content.release()
  return memories.map(({ byteLength }) => byteLength)
}
