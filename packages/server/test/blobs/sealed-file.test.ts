import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer as readAll } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import {
  type FrameKey,
  frameBytes,
  noncePrefixBytes,
  openFrame,
  sealedFrameBytes,
  sealFrame,
} from '../../src/blobs/frames.ts'
import { createSealedFile, reopenSealedFile } from '../../src/blobs/sealed-file.ts'
import { newTestDir } from './test-dir.ts'

const headerBytes = 32 + 7
const contentKey = randomBytes(32)

async function writeSealed(t: TestContext, clear: Buffer, chunkBytes = 50_000) {
  const path = join(newTestDir(t), 'content')
  const writer = await createSealedFile(path, contentKey)
  for (let at = 0; at < clear.length; at += chunkBytes) await writer.write(clear.subarray(at, at + chunkBytes))
  const sealed = await writer.finish(clear.length)
  return { path, sealed, frameAt: (index: number) => headerBytes + index * sealedFrameBytes }
}

describe('a sealed file', () => {
  const eight = 8 * frameBytes
  for (const bytes of [0, 1, frameBytes - 1, frameBytes, frameBytes + 1, eight, eight + 1, 2_000_003]) {
    test(`of ${bytes} bytes reads back whole and in every part`, async (t) => {
      const clear = randomBytes(bytes)
      const { sealed } = await writeSealed(t, clear, 33_333)
      assert.ok((await readAll(sealed.read())).equals(clear))
      const borders = [0, 1, frameBytes - 1, frameBytes, frameBytes + 1, bytes - 1, bytes, bytes + 5]
      for (const start of borders.filter((at) => at >= 0)) {
        for (const end of borders.filter((at) => at >= start)) {
          const part = await readAll(sealed.read(start, end))
          assert.ok(part.equals(clear.subarray(start, end)), `from ${start} to ${end}`)
        }
      }
      await sealed.remove()
    })
  }

  test('holds no clear bytes, and never the same twice', async (t) => {
    const clear = Buffer.from('a secret that must not be seen '.repeat(10_000))
    const [one, other] = [await writeSealed(t, clear), await writeSealed(t, clear)]
    const [first, second] = [readFileSync(one.path), readFileSync(other.path)]
    assert.equal(first.includes('secret'), false)
    for (let at = 0; at + 16 <= first.length; at += 16) {
      assert.notDeepEqual(first.subarray(at, at + 16), second.subarray(at, at + 16), `at ${at}`)
    }
    await one.sealed.remove()
    await other.sealed.remove()
  })

  test('with one bit flipped in any of its frames cannot be read past it', async (t) => {
    const clear = randomBytes(3 * frameBytes + 100)
    const { path, sealed, frameAt } = await writeSealed(t, clear)
    const stored = readFileSync(path)
    for (const index of [0, 1, 3]) {
      const changed = Buffer.from(stored)
      changed[frameAt(index) + 50] = (changed[frameAt(index) + 50] ?? 0) ^ 1
      writeFileSync(path, changed)
      await assert.rejects(readAll(sealed.read()), `frame ${index}`)
      await assert.rejects(readAll(sealed.read(index * frameBytes, index * frameBytes + 1)), `frame ${index} alone`)
    }
    await sealed.remove()
  })

  test('with frames in another order, or one twice, cannot be read', async (t) => {
    const { path, sealed, frameAt } = await writeSealed(t, randomBytes(4 * frameBytes))
    const stored = readFileSync(path)
    const frame = (index: number) => stored.subarray(frameAt(index), frameAt(index + 1))
    for (const order of [
      [1, 0, 2, 3],
      [0, 0, 2, 3],
      [0, 1, 3, 2],
    ]) {
      writeFileSync(path, Buffer.concat([stored.subarray(0, headerBytes), ...order.map(frame)]))
      await assert.rejects(readAll(sealed.read()), order.join())
    }
    await sealed.remove()
  })

  test('that was cut off, in a frame or between two, cannot be read as if it ended there', async (t) => {
    for (const cut of [1, 15, 16, 17, sealedFrameBytes, sealedFrameBytes + 1, 3 * sealedFrameBytes]) {
      const { path, sealed } = await writeSealed(t, randomBytes(3 * frameBytes))
      truncateSync(path, readFileSync(path).length - cut)
      await assert.rejects(readAll(sealed.read()), `${cut} bytes cut`)
      await sealed.remove()
    }
  })

  test('with a frame of another file in its place cannot be read', async (t) => {
    const clear = randomBytes(2 * frameBytes)
    const [one, other] = [await writeSealed(t, clear), await writeSealed(t, clear)]
    const [first, second] = [readFileSync(one.path), readFileSync(other.path)]
    second.copy(first, one.frameAt(0), other.frameAt(0), other.frameAt(1))
    writeFileSync(one.path, first)
    await assert.rejects(readAll(one.sealed.read()))
    await one.sealed.remove()
    await other.sealed.remove()
  })

  test('loses its key before it is unlinked, so that a copy of the link cannot be read', async (t) => {
    const { path, sealed } = await writeSealed(t, randomBytes(frameBytes + 1))
    const kept = `${path}.kept`
    linkSync(path, kept)
    assert.notDeepEqual(readFileSync(kept).subarray(0, headerBytes), Buffer.alloc(headerBytes))
    await sealed.remove()
    assert.equal(existsSync(path), false)
    const header = readFileSync(kept).subarray(0, headerBytes)
    assert.deepEqual(header, Buffer.alloc(headerBytes))
    // Even with the content key.
    await assert.rejects(async () => readAll((await reopenSealedFile(kept, contentKey, frameBytes + 1)).read()))
    await assert.rejects(readAll(sealed.read()))
  })

  test('that is given up half-way loses its key too', async (t) => {
    const path = join(newTestDir(t), 'content')
    const writer = await createSealedFile(path, contentKey)
    await writer.write(randomBytes(20 * frameBytes))
    const kept = `${path}.kept`
    linkSync(path, kept)
    await writer.remove()
    assert.equal(existsSync(path), false)
    assert.deepEqual(readFileSync(kept).subarray(0, headerBytes), Buffer.alloc(headerBytes))
  })

  test('never replaces another file', async (t) => {
    const path = join(newTestDir(t), 'content')
    writeFileSync(path, 'here already')
    await assert.rejects(createSealedFile(path, contentKey), { code: 'EEXIST' })
    assert.equal(readFileSync(path, 'utf8'), 'here already')
  })
})

const seal = (...frame: Parameters<typeof sealFrame>) => Buffer.concat(sealFrame(...frame))

describe('a sealed frame', () => {
  const frameKey: FrameKey = { key: createSecretKey(randomBytes(32)), noncePrefix: randomBytes(noncePrefixBytes) }
  const sealed = seal(frameKey, 3, false, Buffer.from('some content'))

  test('opens to the same content, of any length up to a whole frame', () => {
    for (const bytes of [0, 1, 15, 16, 17, frameBytes - 1, frameBytes]) {
      const content = randomBytes(bytes)
      const frame = seal(frameKey, 0, true, content)
      assert.equal(frame.length, bytes + 16)
      assert.ok(openFrame(frameKey, 0, true, frame).equals(content), `${bytes} bytes`)
    }
    assert.equal(seal(frameKey, 0, true, Buffer.alloc(frameBytes)).length, sealedFrameBytes)
  })

  test('with any one bit flipped is refused', () => {
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      assert.throws(() => openFrame(frameKey, 3, false, changed), `bit ${bit}`)
    }
  })

  test('cut to any length is refused', () => {
    for (let bytes = 0; bytes < sealed.length; bytes++) {
      assert.throws(() => openFrame(frameKey, 3, false, sealed.subarray(0, bytes)), `${bytes} bytes`)
    }
  })

  test('without content is refused when its tag is cut', () => {
    const empty = seal(frameKey, 0, true, Buffer.alloc(0))
    for (let bytes = 0; bytes < empty.length; bytes++) {
      assert.throws(() => openFrame(frameKey, 0, true, empty.subarray(0, bytes)), `${bytes} bytes`)
    }
  })

  test('opens at its own index only', () => {
    for (const index of [2, 4, 3 + 2 ** 31]) assert.throws(() => openFrame(frameKey, index, false, sealed), `${index}`)
    assert.throws(() => openFrame(frameKey, 3, true, sealed), 'as the last one')
  })

  test('opens with the key and the nonce of its own object only', () => {
    assert.throws(() => openFrame({ ...frameKey, key: createSecretKey(randomBytes(32)) }, 3, false, sealed))
    assert.throws(() => openFrame({ ...frameKey, noncePrefix: randomBytes(noncePrefixBytes) }, 3, false, sealed))
  })
})
