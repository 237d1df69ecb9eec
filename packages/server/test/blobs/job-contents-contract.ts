import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { buffer as readAll } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { type MasterKey, openMasterKey } from '../../src/blobs/master-key.ts'
import { headBytes } from '../../src/domain/content/content.ts'
import type { JobContents } from '../../src/domain/ports/content-store.ts'

/** A storage for the content of jobs, and direct access to its objects. */
export type Storage = {
  /** Opens the storage as another process would. */
  open(master: MasterKey): JobContents | Promise<JobContents>
  listStored(): Promise<string[]>
  /** Lists the files of the storage that contain the marker in clear. */
  findClear(marker: string): Promise<string[]>
  /** Changes a byte of an object. */
  damage(key: string, place: number): Promise<void>
  cutOff(key: string, bytes: number): Promise<void>
  /** Puts the bytes of another object in the place of an object. */
  replace(key: string, other: string): Promise<void>
}

type Options = { skip: string | false; sizes: number[]; newStorage(t: TestContext): Promise<Storage> }

const key = randomBytes(32)
export const master = openMasterKey(key, '/nowhere')
export const owner = { accountId: 'one account', scanId: 'one scan' }
/** No object is younger than this: the clock of the storage may be a little behind. */
const anyAgeMs = -60_000

export async function take(contents: JobContents, clear: Buffer) {
  const writer = contents.newWriter()
  try {
    for (let at = 0; at < clear.length; at += 30_000) await writer.write(Buffer.from(clear.subarray(at, at + 30_000)))
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    throw error
  }
}

/** Persists content, reads it back, and removes it. */
export async function keepAndRemove(contents: JobContents, clear: Buffer) {
  const content = await take(contents, clear)
  const kept = await content.persist(owner)
  const opened = await contents.open(kept, content, owner)
  assert.ok((await readAll(opened.read())).equals(clear))
  await opened.release()
  await contents.remove(kept)
}

/** The guarantees of every storage for the content of jobs. */
export function describeJobContents(name: string, { skip, sizes, newStorage }: Options) {
  describe(`content of a background job ${name}`, { skip }, () => {
    for (const bytes of sizes) {
      test(`of ${bytes} bytes can be read by another process that has the key and the location`, async (t) => {
        const storage = await newStorage(t)
        const clear = randomBytes(bytes)
        const content = await take(await storage.open(master), clear)
        const { sha1, sha256 } = content
        const kept = await content.persist(owner)
        await content.release()
        assert.equal(kept.at, bytes <= 65_536 ? 'row' : 'storage')
        assert.equal((await storage.listStored()).length, kept.at === 'row' ? 0 : 1)

        const other = await storage.open(openMasterKey(key, '/nowhere'))
        for (let again = 0; again < 2; again++) {
          const opened = await other.open(kept, { bytes, sha1, sha256 }, owner)
          assert.ok((await readAll(opened.read())).equals(clear))
          assert.ok(opened.head.equals(clear.subarray(0, headBytes)))
          assert.ok((await readAll(opened.read(5, 70_001))).equals(clear.subarray(5, 70_001)))
          const end = Math.max(0, bytes - 100_000)
          assert.ok((await readAll(opened.read(end))).equals(clear.subarray(end)))
          await opened.release()
        }
        await other.remove(kept)
        await other.remove(kept)
        assert.deepEqual(await storage.listStored(), [])
      })
    }

    test('is stored nowhere in clear', async (t) => {
      const storage = await newStorage(t)
      const contents = await storage.open(master)
      const marker = 'a marker that is easy to find '
      const small = await (await take(contents, Buffer.from(marker))).persist(owner)
      assert.ok(small.at === 'row' && !small.sealed.includes(marker))
      const large = await (await take(contents, Buffer.from(marker.repeat(10_000)))).persist(owner)
      assert.ok(large.at === 'storage')
      assert.deepEqual(await storage.findClear(marker), [])
      await contents.remove(large)
    })

    test('that is not persisted is removed when it is released or aborted', async (t) => {
      const storage = await newStorage(t)
      const contents = await storage.open(master)
      const content = await take(contents, randomBytes(200_000))
      assert.equal((await storage.listStored()).length, 1)
      await content.release()
      const writer = contents.newWriter()
      await writer.write(randomBytes(100_000))
      await writer.abort()
      const ended = contents.newWriter()
      await ended.write(randomBytes(100_000))
      await ended.finish()
      await ended.abort()
      assert.deepEqual(await storage.listStored(), [])
    })

    test('cannot be opened with another key, nor read after it was changed or cut off', async (t) => {
      const storage = await newStorage(t)
      const contents = await storage.open(master)
      const stranger = await storage.open(openMasterKey(randomBytes(32), '/nowhere'))
      for (const bytes of [1000, 300_000]) {
        const content = await take(contents, randomBytes(bytes))
        const kept = await content.persist(owner)
        const known = { bytes, sha1: content.sha1, sha256: content.sha256 }
        await assert.rejects(stranger.open(kept, known, owner))
        if (kept.at === 'row') {
          const changed = Buffer.from(kept.sealed)
          changed[changed.length - 20] = (changed[changed.length - 20] ?? 0) ^ 1
          await assert.rejects(contents.open({ at: 'row', sealed: changed }, known, owner))
          continue
        }
        await storage.damage(kept.key, 150_000)
        const opened = await contents.open(kept, known, owner)
        await assert.rejects(readAll(opened.read()))
        await opened.release()
        await storage.cutOff(kept.key, 200_000)
        const cut = await contents.open(kept, known, owner)
        await assert.rejects(readAll(cut.read()))
        await cut.release()
        await contents.remove(kept)
        await assert.rejects(contents.open(kept, known, owner))
      }
    })

    test('opens for its own scan, account, name, length and hash only', async (t) => {
      const storage = await newStorage(t)
      const contents = await storage.open(master)
      for (const bytes of [1000, 300_000]) {
        const [one, other] = [await take(contents, randomBytes(bytes)), await take(contents, randomBytes(bytes))]
        const kept = await one.persist(owner)
        const otherKept = await other.persist({ ...owner, scanId: 'another scan' })
        const known = { bytes, sha1: one.sha1, sha256: one.sha256 }
        const otherKnown = { bytes, sha1: other.sha1, sha256: other.sha256 }
        const refused = /was changed, or belongs elsewhere/
        for (const wrong of [
          () => contents.open(kept, known, { ...owner, scanId: 'another scan' }),
          () => contents.open(kept, known, { ...owner, accountId: 'another account' }),
          () => contents.open(kept, known, { ...owner, accountId: null }),
          () => contents.open(kept, otherKnown, owner),
          () => contents.open(kept, { ...known, bytes: bytes - 1 }, owner),
          () => contents.open(otherKept, otherKnown, owner),
          () => contents.open(otherKept, known, owner),
        ]) {
          await assert.rejects(wrong, refused)
        }
        if (kept.at === 'row' || otherKept.at === 'row') continue
        // The sealed key of one object beside the name of the other.
        await assert.rejects(contents.open({ ...kept, key: otherKept.key }, known, owner), refused)
        await assert.rejects(contents.open({ ...kept, sealedKey: otherKept.sealedKey }, known, owner), refused)
        await storage.replace(kept.key, otherKept.key)
        await assert.rejects(contents.open(kept, known, owner))
        for (const removed of [kept, otherKept]) await contents.remove(removed)
      }
    })

    test('is compared with its hash when it is read back', async (t) => {
      const storage = await newStorage(t)
      const contents = await storage.open(master)
      const sha256 = '0'.repeat(64)
      const small = Object.assign(await take(contents, randomBytes(1000)), { sha256 })
      const row = await small.persist(owner)
      await assert.rejects(
        contents.open(row, { bytes: 1000, sha1: small.sha1, sha256 }, owner),
        /does not have the hash/,
      )
      const large = Object.assign(await take(contents, randomBytes(300_000)), { sha256 })
      const kept = await large.persist(owner)
      const opened = await contents.open(kept, { bytes: 300_000, sha1: large.sha1, sha256 }, owner)
      let handedOut = 0
      await assert.rejects(async () => {
        for await (const chunk of opened.read()) handedOut += chunk.length
      }, /does not have the hash/)
      assert.ok(handedOut < 300_000)
      await opened.release()
      await contents.remove(kept)
    })

    test('is listed by its age, for the sweeper', async (t) => {
      const storage = await newStorage(t)
      const contents = await storage.open(master)
      assert.deepEqual(await contents.listKeys(anyAgeMs), [])
      const kept = await (await take(contents, randomBytes(100_000))).persist(owner)
      assert.ok(kept.at === 'storage')
      assert.deepEqual(await contents.listKeys(60_000), [])
      assert.deepEqual(await contents.listKeys(anyAgeMs), [kept.key])
      await contents.remove(kept)
    })

    test('has a store id that processes share if they have the key and, for objects, the storage', async (t) => {
      const storage = await newStorage(t)
      const contents = await storage.open(master)
      const row = await (await take(contents, Buffer.from('x'))).persist(owner)
      const stored = await (await take(contents, randomBytes(100_000))).persist(owner)
      const same = await storage.open(openMasterKey(key, '/nowhere'))
      const beside = await (await newStorage(t)).open(master)
      const stranger = await storage.open(openMasterKey(randomBytes(32), '/nowhere'))
      const canOpen = (other: JobContents) =>
        [row, stored].map((kept) => other.storeIds.includes(contents.toStoreId(kept)))
      assert.deepEqual(canOpen(same), [true, true])
      assert.deepEqual(canOpen(beside), [true, false])
      assert.deepEqual(canOpen(stranger), [false, false])
      await contents.remove(stored)
    })
  })
}
