import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPeriod, findRate, toPeriodText, toRateText } from '../../src/domain/accounts/account.ts'

const at = (text: string) => new Date(text)
const show = ({ start, end }: { start: Date; end: Date }) => [start.toISOString(), end.toISOString()]

test('a new account is in a period of one month from its creation', () => {
  const created = at('2026-03-10T08:15:30.123Z')
  assert.deepEqual(show(findPeriod(created, created)), ['2026-03-10T08:15:30.123Z', '2026-04-10T08:15:30.123Z'])
})

test('the end belongs to the next period', () => {
  const anchor = at('2026-03-10T08:15:30.123Z')
  assert.equal(show(findPeriod(anchor, at('2026-04-10T08:15:30.122Z')))[0], '2026-03-10T08:15:30.123Z')
  assert.equal(show(findPeriod(anchor, at('2026-04-10T08:15:30.123Z')))[0], '2026-04-10T08:15:30.123Z')
})

test('an account of the 31st comes back to the 31st after a short month', () => {
  const anchor = at('2026-01-31T12:00:00.000Z')
  for (const [now, ...expected] of [
    ['2026-02-10T00:00:00Z', '2026-01-31T12:00:00.000Z', '2026-02-28T12:00:00.000Z'],
    ['2026-03-01T00:00:00Z', '2026-02-28T12:00:00.000Z', '2026-03-31T12:00:00.000Z'],
    ['2028-02-29T13:00:00Z', '2028-02-29T12:00:00.000Z', '2028-03-31T12:00:00.000Z'],
  ] as const) {
    assert.deepEqual(show(findPeriod(anchor, at(now))), expected)
  }
})

test('periods have no gap and no overlap over four years, whatever the day', () => {
  for (const day of ['01', '15', '28', '29', '30', '31']) {
    const anchor = at(`2027-12-${day}T23:59:59.999Z`)
    let period = findPeriod(anchor, anchor)
    for (let month = 0; month < 48; month++) {
      const next = findPeriod(anchor, period.end)
      assert.equal(next.start.getTime(), period.end.getTime())
      assert.equal(findPeriod(anchor, new Date(period.end.getTime() - 1)).start.getTime(), period.start.getTime())
      period = next
    }
  }
})

test('a clock that is behind the creation finds a period that contains its time', () => {
  const anchor = at('2026-03-31T00:00:00.000Z')
  const { start, end } = findPeriod(anchor, at('2026-03-30T23:59:00Z'))
  assert.deepEqual([start, end], [at('2026-02-28T00:00:00.000Z'), anchor])
})

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
  const others = ['', '50', '0/1m', '50/0m', '50/m', '-1/1m', '50/1y', '1.5/1m', '50/1m ', '9999999999/1m', '1/9999d']
  for (const text of others) assert.equal(findRate(text), undefined, text)
})
