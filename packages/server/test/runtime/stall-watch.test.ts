import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { watchStalls } from '../../src/runtime/timers.ts'

type Check = { afterMs: number; processorMs: number; turns?: number }

/** Watches an event loop whose clocks and turns the test sets. */
function watch(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let [threadMs, nowMs, turnCount] = [1000, 0, 0]
  const stalls = watchStalls({ readThreadMs: () => threadMs, now: () => nowMs, countTurns: () => turnCount })
  /** Sets the clocks and turns, and lets the next check come. */
  const check = ({ afterMs, processorMs, turns = 3 }: Check) => {
    threadMs += processorMs
    nowMs += afterMs
    turnCount += turns
    t.mock.timers.tick(100)
  }
  return { ...stalls, check }
}

test('a stall is the processor time between two checks; the longest is remembered for one to two minutes', (t) => {
  const { check, countStalls, findLongestSeconds, close } = watch(t)
  check({ afterMs: 1000, processorMs: 5 })
  assert.equal(countStalls(), 0, 'the elapsed time is not ours')
  check({ afterMs: 150, processorMs: 120, turns: 9 })
  check({ afterMs: 60, processorMs: 51 })
  check({ afterMs: 60, processorMs: 50 })
  assert.equal(countStalls(), 2)
  assert.equal(findLongestSeconds(), 0.12)
  check({ afterMs: 60_000, processorMs: 2 })
  assert.equal(findLongestSeconds(), 0.12)
  check({ afterMs: 61_000, processorMs: 30 })
  assert.equal(findLongestSeconds(), 0.03)
  close()
})

test('after idleness, few turns count as a stall with all of their time, and many as far as they delay the check', (t) => {
  const { check, countStalls, findLongestSeconds, close } = watch(t)
  const idle = { afterMs: 100, processorMs: 0.2 }
  check(idle)
  check({ afterMs: 105, processorMs: 60 })
  assert.deepEqual([countStalls(), findLongestSeconds()], [1, 0.06])
  check(idle)
  check({ afterMs: 110, processorMs: 90, turns: 40 })
  assert.deepEqual([countStalls(), findLongestSeconds()], [1, 0.06])
  check(idle)
  check({ afterMs: 900, processorMs: 850, turns: 40 })
  assert.deepEqual([countStalls(), findLongestSeconds()], [2, 0.8])
  close()
})

test('an idle event loop is checked less often', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let [threadMs, checks] = [0, 0]
  const readThreadMs = () => {
    checks++
    return threadMs
  }
  const stalls = watchStalls({ readThreadMs, now: () => 0, countTurns: () => 0 })
  const countChecks = (ms: number, processorMs: number) => {
    const before = checks
    for (let at = 0; at < ms; at += 10) {
      threadMs += processorMs / 100
      t.mock.timers.tick(10)
    }
    return checks - before
  }
  countChecks(100, 0)
  assert.equal(countChecks(1000, 0), 10)
  countChecks(100, 500)
  assert.equal(countChecks(1000, 500), 50)
  stalls.close()
})

test('a computation of this thread is seen', async () => {
  const stalls = watchStalls()
  const until = process.threadCpuUsage().user + 150_000
  while (process.threadCpuUsage().user < until);
  while (stalls.countStalls() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.ok(stalls.findLongestSeconds() >= 0.1)
  stalls.close()
})
