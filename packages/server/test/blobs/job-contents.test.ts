import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer as readAll } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { makeJobContents } from '../../src/blobs/job-contents.ts'
import { openMasterKey } from '../../src/blobs/master-key.ts'
import type { JobContents } from '../../src/domain/ports/content-store.ts'
import { newTestDir } from './test-dir.ts'

const key = randomBytes(32)
const master = openMasterKey(key, '/nowhere')
const later = () => new Date(Date.now() + 60_000)

function newJobContents(t: TestContext) {
  const dir = join(newTestDir(t), 'jobs')
  const contents = makeJobContents({ dir, master })
  return { dir, contents, listFiles: () => readdirSync(dir).filter((name) => name !== 'store-id') }
}

async function take(contents: JobContents, clear: Buffer) {
  const writer = contents.newWriter()
  for (let at = 0; at < clear.length; at += 30_000) await writer.write(Buffer.from(clear.subarray(at, at + 30_000)))
  return writer.finish()
}

describe('content of a background scan', () => {
  for (const bytes of [1, 65_535, 65_536, 65_537, 70_000, 131_072, 300_000]) {
    test(`of ${bytes} bytes comes back in another process, which has only the key and what was handed over`, async (t) => {
      const { dir, contents, listFiles } = newJobContents(t)
      const clear = randomBytes(bytes)
      const content = await take(contents, clear)
      const { sha1, sha256 } = content
      const kept = await content.handOver()
      await content.release()
      assert.equal(kept.at, bytes <= 65_536 ? 'row' : 'storage')
      assert.equal(listFiles().length, kept.at === 'row' ? 0 : 1)

      const other = makeJobContents({ dir, master: openMasterKey(key, '/nowhere') })
      for (let again = 0; again < 2; again++) {
        const opened = await other.open(kept, { bytes, sha1, sha256 })
        assert.ok((await readAll(opened.read())).equals(clear))
        assert.ok(opened.head.equals(clear.subarray(0, 65_536)))
        assert.ok((await readAll(opened.read(5, 70_001))).equals(clear.subarray(5, 70_001)))
        await opened.release()
      }
      await other.remove(kept)
      await other.remove(kept)
      assert.deepEqual(listFiles(), [])
    })
  }

  test('is nowhere in clear', async (t) => {
    const { dir, contents } = newJobContents(t)
    const marker = 'a marker that is easy to find '
    const small = await (await take(contents, Buffer.from(marker))).handOver()
    assert.ok(small.at === 'row' && !small.sealed.includes(marker))
    const large = await (await take(contents, Buffer.from(marker.repeat(10_000)))).handOver()
    assert.ok(large.at === 'storage' && !readFileSync(join(dir, large.key)).includes(marker))
  })

  test('that is not handed over is gone when it is released, or given up', async (t) => {
    const { contents, listFiles } = newJobContents(t)
    const content = await take(contents, randomBytes(200_000))
    await content.release()
    const writer = contents.newWriter()
    await writer.write(randomBytes(100_000))
    await writer.abort()
    assert.deepEqual(listFiles(), [])
  })

  test('cannot be opened under another key, or when it was changed', async (t) => {
    const { dir, contents } = newJobContents(t)
    const content = await take(contents, randomBytes(1000))
    const kept = await content.handOver()
    assert.ok(kept.at === 'row')
    const { bytes, sha1, sha256 } = content
    const stranger = makeJobContents({ dir, master: openMasterKey(randomBytes(32), '/nowhere') })
    await assert.rejects(stranger.open(kept, { bytes, sha1, sha256 }))
    const changed = Buffer.from(kept.sealed)
    changed[changed.length - 20] = (changed[changed.length - 20] ?? 0) ^ 1
    await assert.rejects(contents.open({ at: 'row', sealed: changed }, { bytes, sha1, sha256 }))
  })

  test('is listed by its age, for whoever looks for what nobody needs', async (t) => {
    const { contents } = newJobContents(t)
    assert.deepEqual(await contents.listKeys(later()), [])
    const kept = await (await take(contents, randomBytes(100_000))).handOver()
    assert.ok(kept.at === 'storage')
    assert.deepEqual(await contents.listKeys(new Date(Date.now() - 60_000)), [])
    assert.deepEqual(await contents.listKeys(later()), [kept.key])
  })

  test('has a place that those share who have the key, and for files the directory, and no others', async (t) => {
    const { dir, contents } = newJobContents(t)
    const row = await (await take(contents, Buffer.from('x'))).handOver()
    const stored = await (await take(contents, randomBytes(100_000))).handOver()
    const same = makeJobContents({ dir, master: openMasterKey(key, '/nowhere') })
    const beside = makeJobContents({ dir: join(newTestDir(t), 'jobs'), master })
    const stranger = makeJobContents({ dir, master: openMasterKey(randomBytes(32), '/nowhere') })
    const canOpen = (other: JobContents) => [row, stored].map((kept) => other.places.includes(contents.toPlace(kept)))
    assert.deepEqual(canOpen(same), [true, true])
    assert.deepEqual(canOpen(beside), [true, false])
    assert.deepEqual(canOpen(stranger), [false, false])
  })
})
