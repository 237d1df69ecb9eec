import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buffer as readAll } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { openContentStore } from '../../src/blobs/content-store.ts'
import { makeMemoryBudget } from '../../src/blobs/memory-content.ts'
import { headBytes } from '../../src/domain/content/content.ts'
import type { ContentStore, ContentWriter, WriterOptions } from '../../src/domain/ports/content-store.ts'
import { Problem } from '../../src/domain/problem.ts'
import { findProcessIdentity } from '../../src/runtime/process.ts'
import { newTestDir } from './test-dir.ts'

const mebibyte = 1024 * 1024

/** Opens a store with memory for 1 MiB, so that larger content goes to a file. */
function openTestStore(t: TestContext, memoryBytes = mebibyte) {
  const dir = join(newTestDir(t), 'content')
  const memory = makeMemoryBudget({ maxBytes: memoryBytes })
  const store = openContentStore({ dir, memory })
  t.after(async () => {
    await store.close()
    assert.equal(memory.countBytes(), 0, 'all memory was returned')
  })
  return { dir, store, memory, listFiles: () => listFiles(dir) }
}

const listFiles = (dir: string) =>
  existsSync(dir)
    ? readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    : []

async function writeAll(writer: ContentWriter, bytes: Buffer, chunkBytes = 65_536) {
  for (let at = 0; at < bytes.length; at += chunkBytes) await writer.write(bytes.subarray(at, at + chunkBytes))
}

async function put(store: ContentStore, clear: Buffer, options: WriterOptions & { chunkBytes?: number } = {}) {
  const writer = store.newWriter(options)
  // A copy, because the writer may free the memory of its chunks.
  await writeAll(writer, Buffer.from(clear), options.chunkBytes)
  return writer.finish()
}

const hashOf = (kind: string, bytes: Buffer) => createHash(kind).update(bytes).digest('hex')

describe('content', () => {
  for (const bytes of [0, 1, 65_535, 65_536, 65_537, mebibyte, mebibyte + 1, 3_000_007]) {
    test(`of ${bytes} bytes comes back as it went in, whole and in parts, with its hashes`, async (t) => {
      const { store, listFiles } = openTestStore(t)
      const clear = randomBytes(bytes)
      const content = await put(store, clear, { chunkBytes: 61_007 })
      assert.equal(content.bytes, bytes)
      assert.equal(content.sha1, hashOf('sha1', clear))
      assert.equal(content.sha256, hashOf('sha256', clear))
      assert.ok(content.head.equals(clear.subarray(0, headBytes)))
      assert.ok((await readAll(content.read())).equals(clear))
      assert.ok((await readAll(content.read())).equals(clear), 'a second time')
      const places = [0, 1, 65_535, 65_536, 65_537, 524_288, mebibyte - 1, mebibyte, bytes - 1, bytes]
      for (const start of places.filter((at) => at >= 0 && at <= bytes)) {
        for (const end of places.filter((at) => at >= start)) {
          const part = await readAll(content.read(start, end))
          assert.ok(part.equals(clear.subarray(start, end)), `from ${start} to ${end}`)
        }
        assert.ok((await readAll(content.read(start))).equals(clear.subarray(start)), `from ${start}`)
      }
      assert.equal(listFiles().length, bytes > mebibyte ? 1 : 0)
      assert.equal(content.isInMemory, bytes <= mebibyte)
      await content.release()
      await content.release()
      assert.deepEqual(listFiles(), [])
      await assert.rejects(readAll(content.read()))
      assert.equal(content.whole, undefined)
    })
  }

  for (const bytes of [mebibyte, mebibyte + 1, 4 * mebibyte, 4 * mebibyte + 1]) {
    test(`of ${bytes} bytes stays in memory where 4 MiB are free`, async (t) => {
      const { store, listFiles } = openTestStore(t, 4 * mebibyte)
      const clear = randomBytes(bytes)
      for (const round of ['once', 'again']) {
        const content = await put(store, clear, { chunkBytes: 61_007 })
        assert.equal(content.isInMemory, bytes <= 4 * mebibyte, round)
        assert.equal(listFiles().length, bytes > 4 * mebibyte ? 1 : 0)
        assert.equal(content.sha1, hashOf('sha1', clear))
        assert.equal(content.sha256, hashOf('sha256', clear))
        assert.ok((await readAll(content.read())).equals(clear))
        const part = await readAll(content.read(mebibyte - 1, mebibyte + 1))
        assert.ok(part.equals(clear.subarray(mebibyte - 1, mebibyte + 1)))
        await content.release()
        await assert.rejects(readAll(content.read()))
      }
    })
  }

  test('that is expected to outgrow the memory goes to a file from its first byte', async (t) => {
    const dir = join(newTestDir(t), 'content')
    const memory = makeMemoryBudget({ maxBytes: mebibyte })
    const store = openContentStore({ dir, memory })
    const clear = randomBytes(2 * mebibyte)
    const writer = store.newWriter({ expectedBytes: clear.length })
    await writer.write(Buffer.from(clear.subarray(0, 1000)))
    assert.equal(memory.countBytes(), 0)
    await writer.write(Buffer.from(clear.subarray(1000)))
    const content = await writer.finish()
    assert.equal(listFiles(dir).length, 1)
    assert.ok((await readAll(content.read())).equals(clear))
    await content.release()
    // The content may be shorter than expected.
    const little = await put(store, Buffer.from('little'), { expectedBytes: clear.length })
    assert.equal((await readAll(little.read())).toString(), 'little')
    await little.release()
    assert.deepEqual(listFiles(dir), [])
  })

  test('is the same in one chunk and in many', async (t) => {
    const { store } = openTestStore(t)
    const clear = randomBytes(mebibyte + 70_000)
    for (const chunkBytes of [clear.length, mebibyte, 1000]) {
      const content = await put(store, clear, { chunkBytes })
      assert.equal(content.sha256, hashOf('sha256', clear))
      assert.ok((await readAll(content.read())).equals(clear))
      await content.release()
    }
  })

  test('is complete and in order when its writer does not wait', async (t) => {
    const { store } = openTestStore(t)
    const clear = randomBytes(mebibyte + 100_000)
    const writer = store.newWriter()
    // The third chunk outgrows the memory, and the others follow at once.
    for (const [start, end] of [
      [0, 1000],
      [1000, mebibyte - 10],
      [mebibyte - 10, mebibyte + 10],
      [mebibyte + 10, mebibyte + 20],
      [mebibyte + 20, clear.length],
    ]) {
      void writer.write(Buffer.from(clear.subarray(start, end)))
    }
    const content = await writer.finish()
    assert.equal(content.sha256, hashOf('sha256', clear))
    assert.ok((await readAll(content.read())).equals(clear))
    await content.release()
  })

  test('is encrypted on the disk and readable by its owner only', async (t) => {
    const { store, listFiles } = openTestStore(t)
    const content = await put(store, Buffer.from('a secret that must not be seen '.repeat(60_000)))
    const [file = ''] = listFiles()
    assert.equal(readFileSync(file).includes('secret'), false)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.equal(statSync(dirname(file)).mode & 0o777, 0o700)
    await content.release()
  })

  test('of parallel writers is not mixed up', async (t) => {
    const { store, listFiles } = openTestStore(t)
    const all = Array.from({ length: 6 }, () => randomBytes(mebibyte + 100_000))
    const contents = await Promise.all(all.map((clear) => put(store, clear)))
    for (const [i, content] of contents.entries()) {
      assert.ok((await readAll(content.read())).equals(all[i] as Buffer))
      await content.release()
    }
    assert.deepEqual(listFiles(), [])
  })
})

describe('an aborted writer leaves no file', () => {
  const large = () => randomBytes(2 * mebibyte)
  const stages: Record<string, (writer: ContentWriter) => Promise<unknown>> = {
    'before anything was written': (writer) => writer.abort(),
    'while everything is in memory': (writer) => writeAll(writer, randomBytes(1000)).then(writer.abort),
    'while its file is being created': (writer) => Promise.all([writer.write(large()), writer.abort()]),
    async 'during writes that nobody waited for'(writer) {
      await writeAll(writer, large())
      await Promise.allSettled([...[1, 2, 3].map(() => writer.write(randomBytes(mebibyte))), writer.abort()])
    },
    async 'after it finished, even twice'(writer) {
      await writeAll(writer, large())
      const content = await writer.finish()
      await Promise.all([writer.abort(), writer.abort()])
      await content.release()
      await assert.rejects(readAll(content.read()))
    },
    async 'while it finishes'(writer) {
      await writeAll(writer, large())
      const [finished] = await Promise.allSettled([writer.finish(), writer.abort()])
      if (finished.status === 'rejected') return
      await finished.value.release()
      await assert.rejects(readAll(finished.value.read()))
    },
  }
  for (const [when, abort] of Object.entries(stages)) {
    test(when, async (t) => {
      const { store, listFiles } = openTestStore(t)
      await abort(store.newWriter())
      assert.deepEqual(listFiles(), [])
    })
  }
})

describe('a disk that refuses content', () => {
  /** Puts a file in place of the directory, so that no file can be created in it. */
  function openBlocked(t: TestContext) {
    const dir = join(newTestDir(t), 'content')
    writeFileSync(dir, '')
    return { dir, store: openContentStore({ dir, memory: makeMemoryBudget({ maxBytes: mebibyte }) }) }
  }

  test('fails the write or the finish, never silently', async (t) => {
    const { store } = openBlocked(t)
    const writer = store.newWriter()
    await assert.rejects(async () => {
      await writer.write(randomBytes(mebibyte + 1))
      await writer.finish()
    })
    await assert.rejects(writer.finish())
    await writer.abort()
  })

  test('does not affect content that fits into memory', async (t) => {
    const { store } = openBlocked(t)
    assert.equal((await put(store, randomBytes(mebibyte))).bytes, mebibyte)
  })

  test('is used again as soon as it works again', async (t) => {
    const { dir, store } = openBlocked(t)
    const failing = store.newWriter()
    await assert.rejects(async () => failing.write(randomBytes(mebibyte + 1)))
    await failing.abort()
    rmSync(dir)
    const content = await put(store, randomBytes(mebibyte + 1))
    assert.equal(content.bytes, mebibyte + 1)
    await content.release()
  })

  test('that fills up half-way fails the content and leaves no file', async (t) => {
    const { store, listFiles } = openTestStore(t)
    const file = await open('/dev/null')
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    for (const how of ['write', 'writev']) t.mock.method(Object.getPrototypeOf(file), how, () => Promise.reject(full))
    await file.close()
    const writer = store.newWriter()
    await assert.rejects(async () => {
      await writeAll(writer, randomBytes(4 * mebibyte))
      await writer.finish()
    }, isStorageFull)
    await writer.abort()
    assert.deepEqual(listFiles(), [])
  })

  test('that cannot overwrite a key still removes the file', async (t) => {
    const { store, listFiles } = openTestStore(t)
    const content = await put(store, randomBytes(2 * mebibyte))
    const file = await open('/dev/null')
    t.mock.method(Object.getPrototypeOf(file), 'write', () => Promise.reject(new Error('input/output error')))
    await file.close()
    await content.release().catch(() => {})
    assert.deepEqual(listFiles(), [])
  })
})

describe('the sweep', () => {
  test('removes the files of ended processes and keeps those of running ones', async (t) => {
    const { dir, store, listFiles } = openTestStore(t)
    const content = await put(store, randomBytes(mebibyte + 1))
    const own = listFiles()

    const child = spawn('sleep', ['60'])
    t.after(() => child.kill())
    await once(child, 'spawn')
    const running = findProcessIdentity(child.pid as number) as string
    // The pid of a running process with another start time or from another boot belongs to a process that has ended.
    const [pid, startTicks, boot] = running.split('-')
    const gone = [`${pid}-${Number(startTicks) - 1}-${boot}`, `${pid}-${startTicks}-00000000`, '4194999-1-abcdef01']
    for (const name of [running, ...gone]) {
      mkdirSync(join(dir, name))
      writeFileSync(join(dir, name, 'left'), 'x')
    }
    assert.equal(await store.sweep(), gone.length)
    assert.deepEqual(listFiles().toSorted(), [...own, join(dir, running, 'left')].toSorted())

    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.equal(await store.sweep(), 1)
    assert.deepEqual(listFiles(), own)
    assert.equal((await readAll(content.read())).length, mebibyte + 1)
    await content.release()
  })

  test('finds nothing in a new store', async (t) => {
    const { store } = openTestStore(t)
    assert.equal(await store.sweep(), 0)
  })

  test('finds nothing after a close', async (t) => {
    const { dir, store } = openTestStore(t)
    await put(store, randomBytes(mebibyte + 1))
    await store.close()
    assert.deepEqual(readdirSync(dir), [])
  })
})

const isStorageFull = (error: unknown) => error instanceof Problem && error.refusal.kind === 'storage-full'
