import assert from 'node:assert/strict'
import { test } from 'node:test'
import { watchStalls } from '../../src/runtime/stall-watch.ts'

test('a stall is the processor time between two turns; the longest is remembered for one to two minutes', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let [threadMs, nowMs] = [1000, 0]
  const stalls = watchStalls({ readThreadMs: () => threadMs, now: () => nowMs })
  const turn = (processorMs: number, elapsedMs: number) => {
    threadMs += processorMs
    nowMs += elapsedMs
    t.mock.timers.tick(20)
  }
  turn(5, 1000)
  assert.equal(stalls.countStalls(), 0, 'the elapsed time is not ours')
  turn(120, 150)
  turn(51, 60)
  turn(50, 60)
  assert.equal(stalls.countStalls(), 2)
  assert.equal(stalls.findLongestSeconds(), 0.12)
  turn(1, 60_000)
  assert.equal(stalls.findLongestSeconds(), 0.12)
  turn(30, 61_000)
  assert.equal(stalls.findLongestSeconds(), 0.03)
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
