import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { makeStrangerLimit } from '../../src/http/admission.ts'

const perSecond = 200
const burst = 2 * perSecond
const refusal = { message: 'rate-limited' }

/** A limit with a clock that moves only when a wait is over. */
function openLimit(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const limit = makeStrangerLimit({ perSecond, now: () => nowMs })
  return {
    limit,
    pass(ms: number) {
      nowMs += ms
      t.mock.timers.tick(ms)
    },
  }
}

describe('requests of strangers', () => {
  test('have no delay up to the burst, and then wait for their turn', async (t) => {
    const { limit, pass } = openLimit(t)
    for (let i = 0; i <= burst; i++) await limit.waitForTurn('192.0.2.1')
    let isOver = false
    const waiting = limit.waitForTurn('192.0.2.1').then(() => {
      isOver = true
    })
    await Promise.resolve()
    assert.equal(isOver, false)
    pass(1000 / perSecond)
    await waiting
  })

  test('that wait for more than five seconds are refused at once, until the network has been quiet', async (t) => {
    const { limit, pass } = openLimit(t)
    const waiting = []
    for (let i = 0; i <= burst + 5 * perSecond; i++) waiting.push(limit.waitForTurn('192.0.2.1'))
    await assert.rejects(limit.waitForTurn('192.0.2.1'), refusal)
    await assert.rejects(limit.refuseTooMany('192.0.2.1'), refusal)
    pass(7000)
    await Promise.all(waiting)
    await limit.refuseTooMany('192.0.2.1')
  })

  test('with a wrong key are refused when their turn comes', async (t) => {
    const { limit, pass } = openLimit(t)
    for (let i = 0; i <= burst; i++) await limit.refuseTooMany('192.0.2.1')
    const refused = assert.rejects(limit.refuseTooMany('192.0.2.1'), refusal)
    pass(1000 / perSecond)
    await refused
  })

  test('count by address, and in IPv6 by the /64', async (t) => {
    const { limit } = openLimit(t)
    for (let i = 0; i <= burst + 5 * perSecond; i++) void limit.waitForTurn(`2001:db8::${i.toString(16)}`)
    await assert.rejects(limit.waitForTurn('2001:db8::ffff'), refusal)
    await limit.waitForTurn('2001:db8:0:1::1')
    await limit.waitForTurn('192.0.2.2')
  })

  test('count as many as they weigh', async (t) => {
    const { limit } = openLimit(t)
    for (let i = 0; i <= (burst + 5 * perSecond) / 10; i++) void limit.waitForTurn('192.0.2.1', 10)
    await assert.rejects(limit.waitForTurn('192.0.2.1', 10), refusal)
  })
})
