import assert from 'node:assert/strict'
import { createSecretKey, randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  type FrameKey,
  frameBytes,
  noncePrefixBytes,
  openFrame,
  sealedFrameBytes,
  sealFrame,
} from '../../src/blobs/frames.ts'

const newKey = (): FrameKey => ({ key: createSecretKey(randomBytes(32)), noncePrefix: randomBytes(noncePrefixBytes) })
const clear = Buffer.from('what an upload holds')

const seal = (...frame: Parameters<typeof sealFrame>) => Buffer.concat(sealFrame(...frame))

describe('a sealed frame', () => {
  const frameKey = newKey()
  const sealed = seal(frameKey, 3, false, clear)

  test('opens to what went in, of any length up to a whole frame', () => {
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

  test('without content is refused too when its tag is cut', () => {
    const empty = seal(frameKey, 0, true, Buffer.alloc(0))
    for (let bytes = 0; bytes < empty.length; bytes++) {
      assert.throws(() => openFrame(frameKey, 0, true, empty.subarray(0, bytes)), `${bytes} bytes`)
    }
  })

  test('opens in its own place only', () => {
    for (const [index, isLast] of [
      [2, false],
      [4, false],
      [3, true],
      [3 + 2 ** 31, false],
    ] as const) {
      assert.throws(() => openFrame(frameKey, index, isLast, sealed), `${index} ${isLast}`)
    }
  })

  test('opens with the key and the nonce of its own object only', () => {
    assert.throws(() => openFrame({ ...frameKey, key: createSecretKey(randomBytes(32)) }, 3, false, sealed))
    assert.throws(() => openFrame({ ...frameKey, noncePrefix: randomBytes(noncePrefixBytes) }, 3, false, sealed))
  })
})
