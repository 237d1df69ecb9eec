import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headers } from '@assay/contract'
import type { Answer } from './http.ts'
import { assertCredits, type Subject } from './operation.ts'
import { assertEmpty, assertProblem } from './problems.ts'

/** Statuses and headers that all operations share. Afterwards the account without credits is over its rate limit. */
export function testEveryOperation({ poorKey, sendGood, send }: Subject) {
  test('401: a request without a key, or with an empty or unknown one, gets no other information', async () => {
    for (const key of [undefined, '', 'unknown', 'a'.repeat(5000)]) {
      const answer = await sendGood({ [headers.apiKey]: key })
      assertEmpty(answer, 401)
      assert.equal(answer.headers['www-authenticate'], 'ApiKey')
      assert.deepEqual(listNumbers(answer), [])
    }
  })

  test('403: an account without credits gets no body, but its credit and rate headers', async () => {
    const answer = await sendGood({ [headers.apiKey]: poorKey() })
    assertEmpty(answer, 403)
    assertCredits(answer, 0)
    assertRate(answer, '1h', 3600)
    assert.equal(answer.headers['x-rate-limit-remaining'], '4')
  })

  test('403: credits are checked before the media type and the body', async () => {
    const answer = await sendGood({ [headers.apiKey]: poorKey(), 'content-type': 'text/plain' })
    assertEmpty(answer, 403)
    assert.equal(answer.headers['x-rate-limit-remaining'], '3')
  })

  test('429: over the rate limit the response has Retry-After and no rate headers', async () => {
    for (const left of [2, 1, 0]) {
      const answer = await sendGood({ [headers.apiKey]: poorKey() })
      assert.equal(answer.headers['x-rate-limit-remaining'], String(left))
    }
    // The rate limit is checked before the credits, so an account without credits gets 429, too.
    for (const type of [{}, { 'content-type': 'text/plain' }]) {
      const answer = await sendGood({ [headers.apiKey]: poorKey(), ...type })
      await assertProblem(answer, { status: 429, kind: 'rate-limited' })
      assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
      assert(Number(answer.headers['retry-after']) <= 3600)
      assert.deepEqual(listNumbers(answer), ['x-api-credit-limit', 'x-api-credit-remaining'])
      assertCredits(answer, 0)
    }
  })

  test('every response to a known key has its credit and rate headers', async () => {
    // The unsupported media type keeps scan operations from accepting the request and charging for it.
    const answer = await send({ headers: { 'content-type': 'text/plain' } })
    assertCredits(answer, 1000)
    assertRate(answer, '1m', 60)
    assert.equal(answer.headers['retry-after'], undefined)
    assert.equal(answer.headers['set-cookie'], undefined)
  })

  test('the name of the key header is not case-sensitive', async () => {
    for (const name of ['x-api-key', 'X-API-KEY', 'x-aPi-kEy']) {
      const answer = await sendGood({ [headers.apiKey]: undefined, [name]: poorKey() })
      assert.equal(answer.status, 429, name)
    }
  })
}

const listNumbers = (answer: Answer) => Object.keys(answer.headers).filter((name) => /^x-(api|rate)-/.test(name))

/** Checks the rate headers: the limit is the length of the window, and the window ends within that time. */
function assertRate(answer: Answer, window: string, windowSeconds: number) {
  assert.equal(answer.headers['x-rate-limit-limit'], window)
  assert.match(String(answer.headers['x-rate-limit-remaining']), /^\d+$/)
  const reset = String(answer.headers['x-rate-limit-reset'])
  assert.equal(new Date(reset).toISOString(), reset)
  const left = (Date.parse(reset) - Date.now()) / 1000
  assert(left > -1 && left <= windowSeconds + 1, `resets in ${left} s`)
}
