import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineBusy } from '../../src/domain/ports/engines.ts'
import { makeSemaphore } from '../../src/domain/semaphore.ts'

const noAbort = new AbortController().signal
const turn = () => new Promise(setImmediate)

describe('a semaphore', () => {
  test('lets `count` pieces of work run at once, and the others in the order of their arrival', async () => {
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

  test('hands a permit to the first waiter, not to a newcomer', async () => {
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

  test('takes the permit back from work that throws or rejects', async () => {
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

  test('rejects work beyond the most that may wait, and no other', async () => {
    const semaphore = makeSemaphore({ count: 1, maxWaiting: 2 })
    const gate = Promise.withResolvers<string>()
    const taken = [1, 2, 3].map(() => semaphore.use(() => gate.promise))
    await assert.rejects(
      semaphore.use(async () => 'too many'),
      EngineBusy,
    )
    gate.resolve('done')
    assert.deepEqual(await Promise.all(taken), ['done', 'done', 'done'])
    assert.equal(await semaphore.use(async () => 'room again'), 'room again')
  })

  test('rejects a waiter after its time, and gives the permit to the next', async () => {
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

  test('lets a waiter leave by its signal, with the reason of the signal', async () => {
    const semaphore = makeSemaphore({ count: 1 })
    const gate = Promise.withResolvers<void>()
    const first = semaphore.use(() => gate.promise)
    const leaving = new AbortController()
    const reason = new Error('the caller left')
    const left = semaphore.use(async () => {}, leaving.signal)
    leaving.abort(reason)
    await assert.rejects(left, reason)
    await assert.rejects(
      semaphore.use(async () => {}, leaving.signal),
      reason,
    )
    gate.resolve()
    await first
    assert.equal(await semaphore.use(async () => 'in', noAbort), 'in')
  })

  test('rejects all waiters when it is told to, and withdraws free permits', async () => {
    const semaphore = makeSemaphore({ count: 2 })
    semaphore.withdraw()
    const gate = Promise.withResolvers<void>()
    const first = semaphore.use(() => gate.promise)
    const waiting = [1, 2].map(() => semaphore.use(async () => {}))
    const rejected = Promise.allSettled(waiting)
    semaphore.rejectWaiting(() => new EngineBusy('closed'))
    assert.ok((await rejected).every(({ status }) => status === 'rejected'))
    gate.resolve()
    await first
  })
})

test('work of different weights shares the permits, first come, first served', async () => {
  const semaphore = makeSemaphore({ count: 10, maxWaitMs: Infinity })
  const gates = [0, 1, 2].map(() => Promise.withResolvers<void>())
  const started: number[] = []
  const run = (index: number, weight: number) =>
    semaphore.use(
      () => {
        started.push(index)
        return gates[index]?.promise ?? Promise.resolve()
      },
      undefined,
      weight,
    )
  const all = [run(0, 6), run(1, 6), run(2, 2)]
  await new Promise(setImmediate)
  // The light one has room, but does not overtake.
  assert.deepEqual(started, [0])
  gates[0]?.resolve()
  await new Promise(setImmediate)
  assert.deepEqual(started, [0, 1, 2])
  for (const gate of gates) gate.resolve()
  await Promise.all(all)
  assert.equal(semaphore.acquire(undefined, 10), undefined)
})
