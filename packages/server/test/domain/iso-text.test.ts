import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toIsoText } from '../../src/domain/clock.ts'

test('times have the text of toISOString', () => {
  const start = Date.UTC(2026, 11, 31, 23, 59, 58)
  const nearby = [0, 1, 9, 10, 99, 100, 999, 1000, 1999, 2000, 63_999, 64_000, 0, 128_001].map((ms) => start + ms)
  const distant = [0, -1, -1000, -999, -62_198_755_200_001, 253_402_300_800_000, 8_640_000_000_000_000]
  for (const ms of [...nearby, ...distant]) assert.equal(toIsoText(new Date(ms)), new Date(ms).toISOString())
})

test('an invalid time throws as toISOString does', () => {
  assert.throws(() => toIsoText(new Date(Number.NaN)), RangeError)
})
