import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decideNextState, defaultRetryMs } from '../../src/domain/webhooks/deliver.ts'

const now = new Date('2027-03-01T12:00:00Z')
const minute = 60_000
const hour = 60 * minute

type Case = { attempts?: number; status?: number | null; retryAfter?: string; random?: number; retryMs?: number[] }

function decide({ attempts = 0, status = 500, retryAfter, random = 0.5, retryMs }: Case) {
  const answer = { status, retryAfter }
  return decideNextState(retryMs ?? defaultRetryMs, { attempts, answer, now, random })
}

/** Milliseconds until the next attempt. */
function getPause(given: Case): number {
  const outcome = decide(given)
  assert(outcome.state === 'pending')
  return outcome.pauseMs
}

describe('the retry schedule', () => {
  test('delivers on every 2xx and on nothing else', () => {
    for (const status of [200, 201, 202, 204, 226, 299]) assert.deepEqual(decide({ status }), { state: 'delivered' })
    for (const status of [null, 101, 199, 300, 301, 302, 304, 307, 308, 400, 401, 404, 409, 429, 500, 503, 600]) {
      assert.equal(decide({ status }).state, 'pending', String(status))
    }
  })

  test('stops on 410, at the first attempt as at the last', () => {
    for (const attempts of [0, 3, 7]) assert.deepEqual(decide({ status: 410, attempts }), { state: 'stopped' })
  })

  test('pauses 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, then gives up after the eighth attempt', () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6].map((attempts) => getPause({ attempts }))
    assert.deepEqual(pauses, [5000, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour])
    assert.deepEqual(decide({ attempts: 7 }), { state: 'dead' })
    assert.deepEqual(decide({ attempts: 8 }), { state: 'dead' })
    assert.deepEqual(decide({ attempts: 7, status: 200 }), { state: 'delivered' })
  })

  test('spreads each pause by 20 % to either side', () => {
    assert.equal(getPause({ random: 0 }), 4000)
    assert.equal(getPause({ random: 1 }), 6000)
    assert.equal(getPause({ attempts: 3, random: 0.25 }), 2 * hour * 0.9)
  })

  test('follows a list of its own, also an empty one', () => {
    assert.equal(getPause({ retryMs: [1000, 2000], attempts: 1 }), 2000)
    assert.deepEqual(decide({ retryMs: [1000, 2000], attempts: 2 }), { state: 'dead' })
    assert.deepEqual(decide({ retryMs: [] }), { state: 'dead' })
  })

  test('waits as long as Retry-After asks, up to twice the pause, and never shorter than the pause', () => {
    assert.equal(getPause({ retryAfter: '8' }), 8000)
    assert.equal(getPause({ retryAfter: '3600' }), 10_000)
    assert.equal(getPause({ retryAfter: '1' }), 5000)
    assert.equal(getPause({ retryAfter: '999999999999' }), 10_000)
    assert.equal(getPause({ attempts: 1, status: 503, retryAfter: '420' }), 7 * minute)
  })

  test('understands the three forms of a date in Retry-After', () => {
    for (const retryAfter of [
      'Mon, 01 Mar 2027 12:07:00 GMT',
      'Monday, 01-Mar-27 12:07:00 GMT',
      'Mon Mar  1 12:07:00 2027',
    ]) {
      assert.equal(getPause({ attempts: 1, retryAfter }), 7 * minute, retryAfter)
    }
    assert.equal(getPause({ attempts: 1, retryAfter: 'Mon, 01 Mar 2027 13:00:00 GMT' }), 10 * minute)
    assert.equal(getPause({ attempts: 1, retryAfter: 'Mon, 01 Mar 2027 11:00:00 GMT' }), 5 * minute)
  })

  test('ignores a Retry-After that makes no sense', () => {
    for (const retryAfter of [
      '',
      '-5',
      '1.5',
      '1e9',
      'soon',
      '2027-03-02',
      '7 minutes',
      'Mon, 41 Mar 2027 12:07:00 GMT',
    ]) {
      assert.equal(getPause({ retryAfter }), 5000, retryAfter)
    }
  })

  test('waits at least a minute after a 429, and longer when it is asked to and may', () => {
    assert.equal(getPause({ status: 429, random: 0 }), minute)
    assert.equal(getPause({ status: 429, retryAfter: '7' }), minute)
    assert.equal(getPause({ status: 429, retryAfter: '3600' }), minute)
    assert.equal(getPause({ status: 429, attempts: 1 }), 5 * minute)
    assert.equal(getPause({ status: 429, attempts: 1, retryAfter: '480' }), 8 * minute)
    assert.deepEqual(decide({ status: 429, attempts: 7, retryAfter: '5' }), { state: 'dead' })
  })
})
