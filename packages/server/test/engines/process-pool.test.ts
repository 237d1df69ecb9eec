import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { EngineBusy, EngineDown } from '../../src/domain/ports/engines.ts'
import type { PoolOptions } from '../../src/engines/child-process/engine-options.ts'
import { openProcessPool } from '../../src/engines/child-process/process-pool.ts'
import type { Child } from '../../src/engines/child-process/start-child.ts'

const noAbort = new AbortController()
const options = {
  name: 'test process',
  minProcesses: 0,
  maxProcesses: 2,
  idleMs: 1000,
  maxWaiting: 10,
  waitMs: 1000,
  reserved: 0,
}

describe('a process pool', () => {
  test('starts processes as work comes, up to its maximum, and ends idle ones down to its minimum', async (t) => {
    const { pool, running, tick } = openTestPool(t, { minProcesses: 1 })
    await pool.opened
    assert.equal(running().length, 1)
    const gate = Promise.withResolvers<void>()
    const works = [1, 2, 3].map(() => pool.use(() => gate.promise, noAbort))
    await settle()
    assert.deepEqual([running().length, pool.countWaiting()], [2, 1])
    gate.resolve()
    await Promise.all(works)
    tick(1000)
    await settle()
    assert.equal(running().length, 1)
  })

  test('gives waiting work the process that is free first, in the order of arrival', async (t) => {
    const starts = [Promise.resolve(), Promise.withResolvers<void>().promise]
    const { pool } = openTestPool(t, {}, (n) => starts[n - 1])
    const gate = Promise.withResolvers<void>()
    const order: number[] = []
    const first = pool.use(() => gate.promise, noAbort)
    await settle()
    const others = [1, 2].map((n) => pool.use(async () => void order.push(n), noAbort))
    gate.resolve()
    await Promise.all([first, ...others])
    assert.deepEqual(order, [1, 2])
  })

  test('replaces a process that died or is worn, and keeps its minimum', async (t) => {
    const { pool, running, started } = openTestPool(t, { minProcesses: 1 })
    await pool.opened
    for (const end of [(child: FakeChild) => child.kill(), (child: FakeChild) => child.wearOut()]) {
      const [before] = running()
      await pool.use(async (child) => end(child as FakeChild), noAbort)
      await settle()
      assert.equal(running().length, 1)
      assert.notEqual(running()[0], before)
    }
    assert.equal(started(), 3)
  })

  test('lets nested work run beside the work that waits for it, without a turn', async (t) => {
    const { pool, running } = openTestPool(t, { maxProcesses: 1 })
    const nested = () => pool.use(async () => running().length, noAbort, { isNested: true })
    assert.equal(await pool.use(nested, noAbort), 2)
    await settle()
    assert.equal(running().length, 1)
  })

  test('rejects work beyond the most that may wait, and lets a caller leave the queue', async (t) => {
    const { pool } = openTestPool(t, { maxProcesses: 1, maxWaiting: 1 })
    const gate = Promise.withResolvers<void>()
    const working = pool.use(() => gate.promise, noAbort)
    const leaving = new AbortController()
    const waiting = assert.rejects(
      pool.use(async () => {}, leaving),
      /the caller left/,
    )
    await assert.rejects(
      pool.use(async () => {}, noAbort),
      EngineBusy,
    )
    leaving.abort(new Error('the caller left'))
    await waiting
    gate.resolve()
    await working
  })

  test('fails work while no process can be started, and retries after pauses that grow', async (t) => {
    let isBroken = true
    const { pool, started, tick } = openTestPool(t, { minProcesses: 1 }, () => {
      if (isBroken) throw new Error('no model')
    })
    await assert.rejects(pool.opened, /no model/)
    assert.equal(pool.isUp(), false)
    await assert.rejects(
      pool.use(async () => {}, noAbort),
      EngineDown,
    )
    tick(500)
    await settle()
    tick(999)
    await settle()
    assert.equal(started(), 2)
    isBroken = false
    tick(1)
    await settle()
    assert.deepEqual([started(), pool.isUp(), pool.findFault()], [3, true, undefined])
    assert.equal(await pool.use(async () => 'works', noAbort), 'works')
  })

  test('restarts a process that dies before any work at once, and after a pause when that repeats', async (t) => {
    const { pool, running, started, tick } = openTestPool(t, { minProcesses: 1 })
    await pool.opened
    for (const expected of [2, 2]) {
      running()[0]?.kill()
      await settle()
      assert.equal(started(), expected)
    }
    tick(500)
    await settle()
    assert.equal(started(), 3)
  })

  test('retires after the work that it was given', async (t) => {
    const { pool, running } = openTestPool(t, { maxProcesses: 1 })
    const gate = Promise.withResolvers<void>()
    const works = [1, 2].map(() => pool.use(() => gate.promise, noAbort))
    await settle()
    const retired = pool.retire()
    gate.resolve()
    await Promise.all(works)
    await retired
    assert.deepEqual(running(), [])
  })

  test('kills all processes when it is closed, and fails work that waits', async (t) => {
    const { pool, running } = openTestPool(t, { maxProcesses: 1 })
    const working = pool.use((child) => child.ended, noAbort)
    const waiting = assert.rejects(
      pool.use(async () => {}, noAbort),
      EngineDown,
    )
    await settle()
    await pool.close()
    await Promise.all([working, waiting])
    assert.deepEqual(running(), [])
    await assert.rejects(
      pool.use(async () => {}, noAbort),
      EngineDown,
    )
  })
})

type FakeChild = Child & { wearOut(): void }

/** A pool of processes in memory, with a clock that stands still. `onStart` may delay a start or make it fail. */
function openTestPool(
  t: TestContext,
  overrides: Partial<PoolOptions>,
  onStart: (n: number) => Promise<void> | undefined | void = () => {},
) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const running = new Set<FakeChild>()
  let started = 0
  const pool = openProcessPool({
    ...options,
    ...overrides,
    log: pino({ level: 'silent' }),
    async start() {
      await onStart(++started)
      const child = newFakeChild(() => running.delete(child))
      running.add(child)
      return child
    },
  })
  return { pool, running: () => [...running], started: () => started, tick: (ms: number) => t.mock.timers.tick(ms) }
}

function newFakeChild(onEnd: () => void): FakeChild {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  let isDead = false
  let needsReplacement = false
  const end = () => {
    isDead = true
    onEnd()
    resolve()
  }
  const unused = () => Promise.reject(new Error('not used here'))
  return {
    pid: undefined,
    sendRequest: unused,
    post: unused,
    readFrame: unused,
    sendData: unused,
    hasEscaped: () => false,
    isDead: () => isDead,
    needsReplacement: () => needsReplacement,
    wearOut() {
      needsReplacement = true
    },
    ended,
    end,
    kill: end,
  }
}

const settle = () => new Promise(setImmediate)
