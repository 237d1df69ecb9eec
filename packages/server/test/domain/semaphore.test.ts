import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineBusy } from '../../src/domain/ports/engines.ts'
import { makeSemaphore } from '../../src/domain/semaphore.ts'

const turn = () => new Promise(setImmediate)

describe('slots', () => {
  test('let so many work at once, and the others in the order they came', async () => {
    const semaphore = makeSemaphore({ count: 2, maxWaiting: 10 })
    const begun: number[] = []
    const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
    const works = gates.map(({ promise }, i) =>
      semaphore.use(() => {
        begun.push(i)
        return promise
      }),
    )
    await turn()
    assert.deepEqual([begun, semaphore.countWaiting()], [[0, 1], 3])
    gates[1]?.resolve()
    await turn()
    assert.deepEqual([begun, semaphore.countWaiting()], [[0, 1, 2], 2])
    for (const { resolve } of gates) resolve()
    await Promise.all(works)
    assert.deepEqual([begun, semaphore.countWaiting()], [[0, 1, 2, 3, 4], 0])
  })

  test('are not taken by who comes in the moment that one is handed on', async () => {
    const semaphore = makeSemaphore({ count: 1, maxWaiting: 10 })
    const order: string[] = []
    const gate = Promise.withResolvers<void>()
    const first = semaphore.use(() => gate.promise)
    const second = semaphore.use(async () => void order.push('waited'))
    const third = first.then(() => semaphore.use(async () => void order.push('came later')))
    gate.resolve()
    await Promise.all([first, second, third])
    assert.deepEqual(order, ['waited', 'came later'])
  })

  test('are given back by work that fails, now or at once', async () => {
    const semaphore = makeSemaphore({ count: 1, maxWaiting: 10 })
    const failure = new Error('the engine is down')
    await assert.rejects(
      semaphore.use(() => Promise.reject(failure)),
      failure,
    )
    const throwing = () => {
      throw failure
    }
    await assert.rejects(semaphore.use(throwing), failure)
    assert.equal(await semaphore.use(async () => 'works'), 'works')
  })

  test('turn away whom they have no room for, and nobody else', async () => {
    const semaphore = makeSemaphore({ count: 1, maxWaiting: 2 })
    const gate = Promise.withResolvers<string>()
    const taken = [1, 2, 3].map(() => semaphore.use(() => gate.promise))
    await assert.rejects(
      semaphore.use(async () => 'too many'),
      /2 others wait/,
    )
    gate.resolve('done')
    assert.deepEqual(await Promise.all(taken), ['done', 'done', 'done'])
    assert.equal(await semaphore.use(async () => 'room again'), 'room again')
  })
})

test('who waits too long is turned away, and the place goes to the next', async () => {
  const semaphore = makeSemaphore({ count: 1, maxWaiting: 10, maxWaitMs: 20 })
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const first = semaphore.use(() => over)
  await assert.rejects(
    semaphore.use(async () => {}),
    EngineBusy,
  )
  assert.equal(semaphore.countWaiting(), 0)
  end()
  await first
  assert.equal(await semaphore.use(async () => 'in'), 'in')
})
