import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { openContentStore } from '../../src/blobs/content-store.ts'
import { openDiskSpace } from '../../src/blobs/disk-space.ts'
import { makeDiskJobContents } from '../../src/blobs/job-contents.ts'
import { openMasterKey } from '../../src/blobs/master-key.ts'
import { makeMemoryBudget } from '../../src/blobs/memory-content.ts'
import { Problem } from '../../src/domain/problem.ts'
import { newTestDir } from './test-dir.ts'

const master = openMasterKey(randomBytes(32), '/nowhere')
const isStorageFull = (error: unknown) => error instanceof Problem && error.refusal.kind === 'storage-full'

test('uploads share their memory: what finds no room lies in a file, and room comes back', async (t) => {
  const dir = join(newTestDir(t), 'content')
  const memory = makeMemoryBudget({ maxBytes: 250_000 })
  const store = openContentStore({ dir, master, memory })
  const bytes = randomBytes(100_000)
  const put = async () => {
    const writer = store.newWriter()
    // In two pieces: the first one fits while the second may not.
    await writer.write(Buffer.from(bytes.subarray(0, 60_000)))
    await writer.write(Buffer.from(bytes.subarray(60_000)))
    return writer.finish()
  }
  const contents = [await put(), await put(), await put(), await put()]
  assert.deepEqual(
    contents.map(({ whole }) => whole !== undefined),
    [true, true, false, false],
  )
  for (const content of contents) assert.deepEqual(await buffer(content.read()), bytes)
  assert.equal(memory.countBytes(), 200_000)
  for (const content of contents) await content.release()
  assert.equal(memory.countBytes(), 0)
  assert.deepEqual(listFiles(dir), [])
})

test('a writer that is given up gives its memory back, before and after it went to a file', async (t) => {
  const memory = makeMemoryBudget({ maxBytes: 100_000 })
  const store = openContentStore({ dir: join(newTestDir(t), 'content'), master, memory })
  for (const bytes of [1000, 70_000, 200_000]) {
    const writer = store.newWriter()
    for (let n = 0; n < 2; n++) await writer.write(randomBytes(bytes))
    await writer.abort()
    assert.equal(memory.countBytes(), 0)
  }
})

test('jobs get as much room as their budget has, and again what they gave back', async (t) => {
  const { contents, dir } = await openJobs(t, { budgetBytes: 1_000_000 })
  const put = async (bytes: number) => {
    const writer = contents.newWriter()
    try {
      await writer.write(randomBytes(bytes))
      const content = await writer.finish()
      return await content.persist()
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

test('below the reserve nothing is begun', async (t) => {
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

test('the disk of a directory that is not there yet can be asked', async (t) => {
  const disk = await openDiskSpace({ dir: join(newTestDir(t), 'not', 'there'), reserveBytes: 0 })
  assert(disk.countFree() > 0)
})
