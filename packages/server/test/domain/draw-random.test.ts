import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawRandom } from '../../src/domain/draw-random.ts'

test('random bytes are never given out twice, also across the end of what was drawn', () => {
  const drawn = Array.from({ length: 3000 }, (_, n) => drawRandom(n % 2 === 0 ? 32 : 12))
  assert.equal(new Set(drawn.map((bytes) => bytes.toString('hex'))).size, drawn.length)
  for (const bytes of drawn) assert(bytes.some((byte) => byte !== 0))
  const [first, second] = [drawRandom(32), drawRandom(32)]
  const before = first.toString('hex')
  second.fill(0)
  for (let n = 0; n < 1000; n++) drawRandom(32)
  assert.equal(first.toString('hex'), before)
})
