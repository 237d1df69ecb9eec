import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineBusy } from '../../src/domain/ports/engines.ts'
import { makeSemaphore } from '../../src/domain/semaphore.ts'

const noAbort = new AbortController()
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
    const left = semaphore.use(async () => {}, leaving)
    leaving.abort(reason)
    await assert.rejects(left, reason)
    await assert.rejects(
      semaphore.use(async () => {}, leaving),
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

describe('a semaphore that callers and background jobs share', () => {
  const { signal } = noAbort
  const newJob = (accountId: string, order: number, stopping = signal) => ({
    signal,
    job: { accountId, order, stopping },
  })

  /** Runs work that ends when it is told to, and notes the order in which it begins. */
  function open(options: Parameters<typeof makeSemaphore>[0]) {
    const semaphore = makeSemaphore({ maxWaitMs: Infinity, ...options })
    const begun: string[] = []
    const gates = new Map<string, () => void>()
    const run = (name: string, work?: Parameters<typeof semaphore.use>[1], weight?: number) =>
      semaphore.use(
        () => {
          begun.push(name)
          return new Promise<void>((resolve) => gates.set(name, resolve))
        },
        work,
        weight,
      )
    return {
      semaphore,
      begun,
      run: (...args: Parameters<typeof run>) => void run(...args).catch(() => {}),
      async end(name: string) {
        gates.get(name)?.()
        await turn()
      },
      /** Ends one piece of work after the other, until none is left. */
      async endAll() {
        await turn()
        for (let i = 0; i < begun.length; i++) {
          gates.get(begun[i] ?? '')?.()
          await turn()
        }
        return begun
      },
    }
  }

  test('serves callers before jobs that came earlier', async () => {
    const { run, endAll } = open({ count: 1 })
    run('first', newJob('a', 0))
    for (const n of [1, 2, 3]) run(`job ${n}`, newJob('a', n))
    run('caller')
    assert.deepEqual(await endAll(), ['first', 'caller', 'job 1', 'job 2', 'job 3'])
  })

  test('keeps permits free for callers, which jobs alone do not use', async () => {
    const { semaphore, begun, run } = open({ count: 3, reserved: 1 })
    for (const n of [1, 2, 3, 4]) run(`job ${n}`, newJob('a', n))
    await turn()
    assert.deepEqual([begun, semaphore.countWaiting()], [['job 1', 'job 2'], 2])
    run('caller')
    await turn()
    assert.deepEqual(begun, ['job 1', 'job 2', 'caller'])
  })

  test('lets a job run that needs reserved permits, when no other job runs', async () => {
    const { begun, run, end } = open({ count: 10, reserved: 4 })
    run('job', newJob('a', 1), 2)
    run('large job', newJob('a', 2), 10)
    await turn()
    assert.deepEqual(begun, ['job'])
    await end('job')
    assert.deepEqual(begun, ['job', 'large job'])
  })

  test('reserves permits only while callers come, if told so', async (t) => {
    const now = t.mock.method(performance, 'now', () => 0)
    const { begun, run, end } = open({ count: 2, reserved: 1, reservedForMs: 1000 })
    for (const n of [1, 2]) run(`job ${n}`, newJob('a', n))
    await turn()
    assert.deepEqual(begun, ['job 1', 'job 2'])
    for (const name of ['job 1', 'job 2']) await end(name)
    run('caller')
    await turn()
    await end('caller')
    for (const n of [3, 4, 5, 6]) run(`job ${n}`, newJob('a', n))
    await turn()
    assert.deepEqual(begun.slice(3), ['job 3'])
    now.mock.mockImplementation(() => 1001)
    await end('job 3')
    assert.deepEqual(begun.slice(3), ['job 3', 'job 4', 'job 5'])
  })

  test('lets jobs have a turn however many callers come', async () => {
    const { run, endAll } = open({ count: 1 })
    run('caller')
    run('job', newJob('a', 1))
    for (let n = 0; n < 20; n++) run(`caller ${n}`)
    assert.equal((await endAll()).indexOf('job'), 9)
  })

  test('serves the jobs of an account by their age, and the accounts in turns', async () => {
    const { run, endAll } = open({ count: 1 })
    run('first', newJob('z', 0))
    for (const n of [3, 1, 4, 2]) run(`a${n}`, newJob('a', n))
    // The jobs of b are all younger than those of a.
    for (const n of [9, 8]) run(`b${n}`, newJob('b', n))
    assert.deepEqual(await endAll(), ['first', 'a1', 'b8', 'a2', 'b9', 'a3', 'a4'])
  })

  test('bounds the wait of callers, and the number of them, but not of jobs', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { semaphore, begun, run, end } = open({ count: 1, maxWaiting: 1, maxWaitMs: 1000 })
    run('first')
    for (const n of [1, 2]) run(`job ${n}`, newJob('a', n))
    const waiting = assert.rejects(
      semaphore.use(async () => {}),
      EngineBusy,
    )
    await assert.rejects(
      semaphore.use(async () => {}),
      /Too many/,
    )
    t.mock.timers.tick(3_600_000)
    await waiting
    await end('first')
    assert.deepEqual(begun, ['first', 'job 1'])
  })

  test('ends the wait of a job when the service stops, and no work that need not wait', async () => {
    const { semaphore, run, end } = open({ count: 1 })
    run('first')
    const stop = new AbortController()
    const reason = new Error('the service is stopping')
    const waiting = semaphore.use(async () => {}, newJob('a', 1, stop.signal))
    stop.abort(reason)
    await assert.rejects(waiting, reason)
    await assert.rejects(
      semaphore.use(async () => {}, newJob('a', 1, stop.signal)),
      reason,
    )
    assert.equal(semaphore.countWaiting(), 0)
    await end('first')
    assert.equal(await semaphore.use(async () => 'in', newJob('a', 1, stop.signal)), 'in')
  })

  test('lets an account hold its part at most, and others pass its waiting work, callers and jobs', async () => {
    const semaphore = makeSemaphore({ count: 4, perAccount: 2 })
    const begun: string[] = []
    const gates = new Map<string, () => void>()
    const { signal } = noAbort
    const begin = (name: string, accountId: string, isJob = false) =>
      semaphore.use(
        () => {
          begun.push(name)
          return new Promise<void>((resolve) => gates.set(name, resolve))
        },
        isJob ? { signal, job: { accountId, order: 1, stopping: signal } } : { signal, accountId },
      )
    const works = [
      ...['a1', 'a2', 'a3', 'a4'].map((name) => begin(name, 'a')),
      begin('a5', 'a', true),
      begin('b1', 'b', true),
      begin('c1', 'c'),
    ]
    await turn()
    assert.deepEqual([begun, semaphore.countWaiting()], [['a1', 'a2', 'b1', 'c1'], 3])
    gates.get('b1')?.()
    await turn()
    assert.deepEqual(begun, ['a1', 'a2', 'b1', 'c1'], 'a free permit is none for an account that has its part')
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'c1']) {
      gates.get(name)?.()
      await turn()
    }
    await Promise.all(works)
    assert.deepEqual(begun, ['a1', 'a2', 'b1', 'c1', 'a3', 'a4', 'a5'])
  })

  test('lets an account hold a smaller part while another one has work, and its whole part alone', async (t) => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const semaphore = makeSemaphore({ count: 4, perAccount: 3, perAccountBesideOthers: 1 })
    const begun: string[] = []
    const gates = new Map<string, () => void>()
    const toWork = (accountId: string) => ({ signal: noAbort.signal, accountId })
    const begin = (name: string, accountId: string) =>
      semaphore.use(() => {
        begun.push(name)
        return new Promise<void>((resolve) => gates.set(name, resolve))
      }, toWork(accountId))
    const end = async (name: string) => {
      gates.get(name)?.()
      await turn()
    }
    const works = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'].map((name) => begin(name, 'a'))
    await turn()
    assert.deepEqual(begun, ['a1', 'a2', 'a3'], 'alone')
    semaphore.noteAccount(toWork('b'))
    await end('a1')
    await end('a2')
    assert.deepEqual(begun, ['a1', 'a2', 'a3'], 'the account still holds its smaller part')
    await end('a3')
    assert.deepEqual(begun, ['a1', 'a2', 'a3', 'a4'], 'beside the other account')
    works.push(begin('b1', 'b'))
    await turn()
    assert.deepEqual(begun, ['a1', 'a2', 'a3', 'a4', 'b1'], 'the other account passes the waiting work')
    await end('b1')
    now += 60_000
    semaphore.noteAccount(toWork('a'))
    await end('a4')
    assert.deepEqual(begun, ['a1', 'a2', 'a3', 'a4', 'b1', 'a5', 'a6', 'a7'], 'alone again')
    for (const name of ['a5', 'a6', 'a7']) await end(name)
    await Promise.all(works)
  })
})
