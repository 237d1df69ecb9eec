import assert from 'node:assert/strict'
import { test } from 'node:test'
import { centreKernel } from '../../src/engines/nsfw/models/quantization.ts'

/** What the bytes of a kernel stand for, channel by channel. */
function toValues({ values, zero, scales }: Parameters<typeof centreKernel>[0]): number[] {
  const perChannel = values.length / scales.length
  return Array.from(values, (byte, i) => (byte - zero) * (scales[Math.floor(i / perChannel)] ?? 0))
}

test('a channel that fits stands for the same after it was moved to the middle', () => {
  const shipped = { values: Uint8Array.of(0, 60, 187, 59, 61, 100), zero: 60, scales: Float64Array.of(0.5, 2) }
  const centred = centreKernel(shipped)
  assert.equal(centred.zero, 128)
  assert.deepEqual(toValues(centred), toValues(shipped))
})

test('one that reaches too far is rounded to wider steps, and its neighbour is not', () => {
  const shipped = { values: Uint8Array.of(0, 7, 199, 255, 199, 210), zero: 199, scales: Float64Array.of(0.5, 0.5) }
  const centred = centreKernel(shipped)
  const [before, after] = [toValues(shipped), toValues(centred)]
  assert.deepEqual(after.slice(3), before.slice(3))
  const step = (199 / 127) * 0.5
  for (const [i, value] of before.entries()) assert.ok(Math.abs(value - (after[i] ?? 0)) <= step / 2, `${i}`)
  assert.ok(centred.values.every((byte) => byte >= 1))
})
