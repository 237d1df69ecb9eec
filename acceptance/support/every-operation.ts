import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headers } from '@assay/contract'
import type { Answer } from './http.ts'
import { assertCredits, type Subject } from './operation.ts'
import { assertEmpty, assertProblem } from './problems.ts'

/** Tests the statuses and headers that all operations share. The account without credits exceeds its rate afterwards. */
export function testEveryOperation({ poorKey, sendGood, send }: Subject) {
  test('401: a request without a key, with an empty or an unknown one learns nothing but that', async () => {
    for (const key of [undefined, '', 'unknown', 'a'.repeat(5000)]) {
      const answer = await sendGood({ [headers.apiKey]: key })
      assertEmpty(answer, 401)
      assert.equal(answer.headers['www-authenticate'], 'ApiKey')
      assert.deepEqual(listNumbers(answer), [])
    }
  })

  test('403: an account without credits is refused without a body, and told its numbers', async () => {
    const answer = await sendGood({ [headers.apiKey]: poorKey() })
    assertEmpty(answer, 403)
    assertCredits(answer, 0)
    assertRate(answer, '1h', 3600)
    assert.equal(answer.headers['x-rate-limit-remaining'], '4')
  })

  test('403: credits are looked at before the media type and the body', async () => {
    const answer = await sendGood({ [headers.apiKey]: poorKey(), 'content-type': 'text/plain' })
    assertEmpty(answer, 403)
    assert.equal(answer.headers['x-rate-limit-remaining'], '3')
  })

  test('429: over the rate the answer says when to come back, and has no rate headers', async () => {
    for (const left of [2, 1, 0]) {
      const answer = await sendGood({ [headers.apiKey]: poorKey() })
      assert.equal(answer.headers['x-rate-limit-remaining'], String(left))
    }
    // The rate is checked before the credits, so that an account without credits gets 429 as well.
    for (const type of [{}, { 'content-type': 'text/plain' }]) {
      const answer = await sendGood({ [headers.apiKey]: poorKey(), ...type })
      await assertProblem(answer, { status: 429, kind: 'rate-limited' })
      assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
      assert(Number(answer.headers['retry-after']) <= 3600)
      assert.deepEqual(listNumbers(answer), ['x-api-credit-limit', 'x-api-credit-remaining'])
      assertCredits(answer, 0)
    }
  })

  test('every answer to a known key carries its credits and its rate window', async () => {
    // The media type is wrong, so that no operation accepts and charges the request.
    const answer = await send({ headers: { 'content-type': 'text/plain' } })
    assertCredits(answer, 1000)
    assertRate(answer, '1m', 60)
    assert.equal(answer.headers['retry-after'], undefined)
    assert.equal(answer.headers['set-cookie'], undefined)
  })

  test('the name of the key header is matched in any case', async () => {
    for (const name of ['x-api-key', 'X-API-KEY', 'x-aPi-kEy']) {
      const answer = await sendGood({ [headers.apiKey]: undefined, [name]: poorKey() })
      assert.equal(answer.status, 429, name)
    }
  })
}

const listNumbers = (answer: Answer) => Object.keys(answer.headers).filter((name) => /^x-(api|rate)-/.test(name))

/** Checks that the rate headers name the window and an end within it. */
function assertRate(answer: Answer, window: string, windowSeconds: number) {
  assert.equal(answer.headers['x-rate-limit-limit'], window)
  assert.match(String(answer.headers['x-rate-limit-remaining']), /^\d+$/)
  const reset = String(answer.headers['x-rate-limit-reset'])
  assert.equal(new Date(reset).toISOString(), reset)
  const left = (Date.parse(reset) - Date.now()) / 1000
  assert(left > -1 && left <= windowSeconds + 1, `resets in ${left} s`)
}
