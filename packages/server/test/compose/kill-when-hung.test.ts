import assert from 'node:assert/strict'
import { test } from 'node:test'
import { killWhenHung } from '../../src/compose/http-process/open-processes.ts'

test('a process that does not answer for a minute is killed once, and one that answers late is not', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const answers: PromiseWithResolvers<{ value: unknown }>[] = []
  const ended = Promise.withResolvers<void>()
  let killed = 0
  const call = () => {
    const answer = Promise.withResolvers<{ value: unknown }>()
    answers.push(answer)
    return answer.promise
  }
  killWhenHung({ call, closed: ended.promise }, () => killed++)
  const pass = (seconds: number) => t.mock.timers.tick(seconds * 1000)
  pass(60)
  answers[0]?.resolve({ value: null })
  await new Promise(setImmediate)
  pass(60)
  assert.deepEqual([answers.length, killed], [2, 0])
  pass(20)
  assert.deepEqual([answers.length, killed], [2, 1])
  ended.resolve()
  await new Promise(setImmediate)
  pass(600)
  assert.deepEqual([answers.length, killed], [2, 1])
})
