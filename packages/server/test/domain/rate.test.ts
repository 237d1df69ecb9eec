import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findRate, toPeriodText, toRateText } from '../../src/domain/accounts/account.ts'

test('a rate reads and prints the same', () => {
  for (const text of ['50/1m', '1/1s', '5000/1d', '7/90s', '100/2h']) {
    const rate = findRate(text)
    assert.ok(rate !== undefined, text)
    assert.equal(toRateText(rate), text)
  }
})

test('the window is shown in its largest whole unit', () => {
  assert.equal(toPeriodText(60), '1m')
  assert.equal(toPeriodText(3600), '1h')
  assert.equal(toPeriodText(86400), '1d')
  assert.equal(toPeriodText(61), '61s')
})

test('what is not a rate is refused', () => {
  for (const text of [
    '',
    '50',
    '0/1m',
    '50/0m',
    '50/m',
    '-1/1m',
    '50/1y',
    '1.5/1m',
    '50/1m ',
    '9999999999/1m',
    '1/9999d',
  ]) {
    assert.equal(findRate(text), undefined, text)
  }
})
