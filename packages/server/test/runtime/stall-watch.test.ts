import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { watchStalls } from '../../src/runtime/stall-watch.ts'

type Look = { afterMs: number; processorMs: number; turns?: number }

/** Watches an event loop of which the test tells everything. */
function watch(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let [threadMs, nowMs, turnCount] = [1000, 0, 0]
  const stalls = watchStalls({ readThreadMs: () => threadMs, now: () => nowMs, countTurns: () => turnCount })
  /** Lets the next look come after this time. */
  const look = ({ afterMs, processorMs, turns = 3 }: Look) => {
    threadMs += processorMs
    nowMs += afterMs
    turnCount += turns
    t.mock.timers.tick(100)
  }
  return { ...stalls, look }
}

test('a stall is the processor time between two looks; the longest is remembered for one to two minutes', (t) => {
  const { look, countStalls, findLongestSeconds, close } = watch(t)
  look({ afterMs: 1000, processorMs: 5 })
  assert.equal(countStalls(), 0, 'the elapsed time is not ours')
  look({ afterMs: 150, processorMs: 120, turns: 9 })
  look({ afterMs: 60, processorMs: 51 })
  look({ afterMs: 60, processorMs: 50 })
  assert.equal(countStalls(), 2)
  assert.equal(findLongestSeconds(), 0.12)
  look({ afterMs: 60_000, processorMs: 2 })
  assert.equal(findLongestSeconds(), 0.12)
  look({ afterMs: 61_000, processorMs: 30 })
  assert.equal(findLongestSeconds(), 0.03)
  close()
})

test('what ends idleness is a stall if it was few turns, and else as far as it made the look late', (t) => {
  const { look, countStalls, findLongestSeconds, close } = watch(t)
  const idle = { afterMs: 100, processorMs: 0.2 }
  look(idle)
  look({ afterMs: 105, processorMs: 60 })
  assert.deepEqual([countStalls(), findLongestSeconds()], [1, 0.06])
  look(idle)
  look({ afterMs: 110, processorMs: 90, turns: 40 })
  assert.deepEqual([countStalls(), findLongestSeconds()], [1, 0.06])
  look(idle)
  look({ afterMs: 900, processorMs: 850, turns: 40 })
  assert.deepEqual([countStalls(), findLongestSeconds()], [2, 0.8])
  close()
})

test('an idle event loop is looked at less often', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let [threadMs, looks] = [0, 0]
  const readThreadMs = () => {
    looks++
    return threadMs
  }
  const stalls = watchStalls({ readThreadMs, now: () => 0, countTurns: () => 0 })
  const countLooks = (ms: number, processorMs: number) => {
    const before = looks
    for (let at = 0; at < ms; at += 10) {
      threadMs += processorMs / 100
      t.mock.timers.tick(10)
    }
    return looks - before
  }
  countLooks(100, 0)
  assert.equal(countLooks(1000, 0), 10)
  countLooks(100, 500)
  assert.equal(countLooks(1000, 500), 50)
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
