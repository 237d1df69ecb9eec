import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatherMany, makeGroupCommit } from '../../src/database/group-commit.ts'

const newItems = (count: number) => Array.from({ length: count }, (_, i) => i)

/** A group commit that records the sizes of its batches. */
function newRecorder(options: Omit<Parameters<typeof makeGroupCommit>[0], 'run'>) {
  const sizes: number[] = []
  const run = async (items: unknown[]) => {
    sizes.push(items.length)
    await new Promise(setImmediate)
    return items
  }
  return { sizes, ask: makeGroupCommit({ run, ...options }) }
}

test('calls that arrive while a batch is in flight form the next one', async () => {
  const batches: number[][] = []
  const ask = makeGroupCommit({
    run: async (items: number[]) => {
      batches.push(items)
      await new Promise(setImmediate)
      return items.map((item) => item * 2)
    },
    maxBatch: 100,
    maxWaiting: 100,
  })
  const first = [1, 2].map(ask)
  await new Promise(setImmediate)
  const answers = await Promise.all([...first, ...[3, 4, 5].map(ask)])
  assert.deepEqual(answers, [2, 4, 6, 8, 10])
  assert.deepEqual(batches, [
    [1, 2],
    [3, 4, 5],
  ])
})

test('after a large batch the next one waits for most of the calls that were under way, or for a moment', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ask, sizes } = newRecorder({ maxBatch: 100, readMs: () => 0 })
  await Promise.all([1, 2, 3, 4, 5].map(ask))
  const next = [ask(6), ask(7)]
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  assert.deepEqual(sizes, [5])
  await Promise.all([...next, ask(8)])
  assert.deepEqual(sizes, [5, 3])
  const alone = ask(9)
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  assert.deepEqual(sizes, [5, 3])
  t.mock.timers.tick(3)
  await alone
  // A caller that is alone does not wait again.
  await ask(10)
  assert.deepEqual(sizes, [5, 3, 1, 1])
})

test('batches that no caller waits for grow under load, and a single call is sent at once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ask, sizes } = newRecorder({ maxBatch: 256, readMs: () => 0, gathering: gatherMany })
  await ask(1)
  await Promise.all([2, 3].map(ask))
  const next = [4, 5, 6].map(ask)
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  assert.deepEqual(sizes, [1, 2])
  await Promise.all([...next, ask(7)])
  assert.deepEqual(sizes, [1, 2, 4])
  const last = ask(8)
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  t.mock.timers.tick(20)
  await last
  await ask(9)
  assert.deepEqual(sizes, [1, 2, 4, 1, 1])
})

test('a batch that no caller waits for does not wait for more than 64 calls', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ask, sizes } = newRecorder({ maxBatch: 256, readMs: () => 0, gathering: gatherMany })
  await Promise.all(newItems(40).map(ask))
  const next = newItems(63).map(ask)
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  assert.deepEqual(sizes, [40])
  next.push(ask(64))
  await new Promise(setImmediate)
  assert.deepEqual(sizes, [40, 64])
  await Promise.all(next)
})

const patient = (ms: number) => ({ maxBatch: 100, readMs: () => 0, toWaitMs: () => ms })
const waitForTurns = async () => {
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
}

test('calls that may wait share a batch with later ones, and none waits longer than it may', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ask, sizes } = newRecorder(patient(6))
  const first = ask(1)
  await waitForTurns()
  t.mock.timers.tick(5)
  const second = ask(2)
  await waitForTurns()
  assert.deepEqual(sizes, [])
  t.mock.timers.tick(1)
  await Promise.all([first, second])
  assert.deepEqual(sizes, [2])
})

test('a call that may not wait takes those along that wait', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ask, sizes } = newRecorder({ ...patient(0), toWaitMs: (item) => (item === 'urgent' ? 0 : 50) })
  const waiting = ask('patient')
  await waitForTurns()
  assert.deepEqual(sizes, [])
  await Promise.all([waiting, ask('urgent')])
  assert.deepEqual(sizes, [2])
})

test('calls that may wait do not wait for more than sixteen', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ask, sizes } = newRecorder(patient(50))
  const calls = newItems(15).map(ask)
  await waitForTurns()
  assert.deepEqual(sizes, [])
  await Promise.all([...calls, ask(16)])
  assert.deepEqual(sizes, [16])
})

test('a full batch does not wait for more calls, however many were under way', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ask, sizes } = newRecorder({ maxBatch: 4, readMs: () => 0 })
  await Promise.all(newItems(4).map(ask))
  const first = newItems(12).map(ask)
  for (let turn = 0; turn < 6; turn++) await new Promise(setImmediate)
  assert.deepEqual(sizes, [4, 4, 4, 4])
  await Promise.all(first)
  const next = newItems(4).map(ask)
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
  assert.deepEqual(sizes, [4, 4, 4, 4, 4])
  await Promise.all(next)
})

test('a small batch waits for others if calls arrived during the last one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const batches: { items: number[]; complete(): void }[] = []
  const ask = makeGroupCommit({
    run: (items: number[]) =>
      new Promise<number[]>((resolve) => batches.push({ items, complete: () => resolve(items) })),
    maxBatch: 100,
    readMs: () => 0,
  })
  const waitForBatch = async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    return batches.shift()
  }
  const first = [ask(1), ask(2)]
  const running = await waitForBatch()
  const second = [ask(3), ask(4), ask(5)]
  running?.complete()
  await Promise.all(first)
  const next = await waitForBatch()
  assert.deepEqual(next?.items, [3, 4, 5])
  next?.complete()
  await Promise.all(second)
  // Five calls were under way together before, and three in the last batch.
  const third = [ask(6), ask(7)]
  assert.equal(await waitForBatch(), undefined)
  third.push(ask(8))
  const last = await waitForBatch()
  assert.deepEqual(last?.items, [6, 7, 8])
  last?.complete()
  await Promise.all(third)
})

test('one bad item fails alone, and the others of its batch are done', async () => {
  const ask = makeGroupCommit({
    run: async (items: number[]) => {
      await new Promise(setImmediate)
      if (items.includes(3)) throw Object.assign(new Error('three is bad'), { code: '22003' })
      return items
    },
    maxBatch: 100,
    maxWaiting: 100,
  })
  const completed = await Promise.allSettled([1, 2, 3, 4].map(ask))
  assert.deepEqual(
    completed.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
  )
})

test('batches stay within their size, and the queue within its bound', async () => {
  const { ask, sizes } = newRecorder({ maxBatch: 4, maxWaiting: 10 })
  const completed = await Promise.allSettled(newItems(20).map(ask))
  assert.equal(completed.filter(({ status }) => status === 'fulfilled').length, 10)
  assert.ok(Math.max(...sizes) <= 4)
})

test('an error that no single item causes fails the whole batch at once', async () => {
  let runs = 0
  const ask = makeGroupCommit({
    run: async () => {
      runs++
      await new Promise(setImmediate)
      throw new Error('away')
    },
    maxBatch: 100,
    maxWaiting: 100,
  })
  const completed = await Promise.allSettled([1, 2, 3, 4].map(ask))
  assert.ok(completed.every(({ status }) => status === 'rejected'))
  assert.equal(runs, 1)
})

test('a call that has waited too long is rejected and never sent', async (t) => {
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const sent: number[] = []
  const ask = makeGroupCommit({
    run: async (items: number[]) => {
      sent.push(...items)
      await new Promise(setImmediate)
      nowMs += 1000
      return items
    },
    maxBatch: 100,
    maxWaiting: 100,
    maxWaitMs: 500,
  })
  const first = ask(1)
  await new Promise(setImmediate)
  await assert.rejects(ask(2), { message: 'overloaded' })
  assert.equal(await first, 1)
  assert.equal(await ask(3), 3)
  assert.deepEqual(sent, [1, 3])
})
