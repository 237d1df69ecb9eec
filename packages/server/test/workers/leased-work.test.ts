import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { openLeasedWork } from '../../src/workers/leased-work.ts'

type Item = { token: string }
type Deps = Parameters<typeof openLeasedWork<Item, Item>>[0]

const turn = () => new Promise(setImmediate)

/** A loop over a queue in memory, with room for two and a poll every second of a clock that the test moves. */
function openLoop(t: TestContext, change: Partial<Deps> = {}) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const queue: Item[] = []
  const lines: string[] = []
  const running = new Map<string, PromiseWithResolvers<void>>()
  const stats = { claims: 0 }
  const work = openLeasedWork<Item, Item>({
    name: 'items',
    countRoom: (running) => 2 - running,
    async claim(limit) {
      stats.claims++
      return queue.splice(0, limit)
    },
    findPollMs: () => 1000,
    claimsMore: () => true,
    pokeEndsBackOff: false,
    toLease: (item) => item,
    toId: ({ token }) => token,
    async run({ token }) {
      const end = Promise.withResolvers<void>()
      running.set(token, end)
      await end.promise.finally(() => running.delete(token))
    },
    log: pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line).msg) }),
    isOutage: () => false,
    ...change,
  })
  t.after(async () => {
    for (const { resolve } of running.values()) resolve()
    await work.close()
  })
  const add = (...tokens: string[]) => queue.push(...tokens.map((token) => ({ token })))
  const listRunning = () => [...running.keys()]
  const tick = async (ms: number) => {
    t.mock.timers.tick(ms)
    await turn()
  }
  return { work, queue, lines, running, stats, add, listRunning, tick }
}

describe('leased work', () => {
  test('starts as much as there is room for, and claims more when some has ended', async (t) => {
    const { work, add, listRunning, running } = openLoop(t)
    await turn()
    add('a', 'b', 'c')
    work.poke()
    await turn()
    assert.deepEqual(listRunning(), ['a', 'b'])
    running.get('a')?.resolve()
    await turn()
    assert.deepEqual(listRunning(), ['b', 'c'])
  })

  test('is not claimed again for what ended during a claim that has asked for enough', async (t) => {
    const claims: { limit: number; resolve(items: Item[]): void }[] = []
    const claim = (limit: number) => new Promise<Item[]>((resolve) => claims.push({ limit, resolve }))
    const answer = async (...tokens: string[]) => {
      claims.at(-1)?.resolve(tokens.map((token) => ({ token })))
      await turn()
    }
    const claimsMore = (running: number, asked: number) => running + asked <= 2
    const { running } = openLoop(t, { countRoom: (count) => 4 - count, claim, claimsMore })
    const end = async (token: string) => {
      running.get(token)?.resolve()
      await turn()
    }
    await answer('a', 'b', 'c', 'd')
    await end('a')
    await end('b')
    await end('c')
    await answer('e', 'f')
    assert.deepEqual(
      claims.map(({ limit }) => limit),
      [4, 2],
    )
    await end('d')
    await end('e')
    assert.deepEqual(
      claims.map(({ limit }) => limit),
      [4, 2, 2],
    )
    await answer()
  })

  test('is claimed at each poll, and again after a poke that came during a claim', async (t) => {
    const { work, stats, tick } = openLoop(t)
    work.poke()
    await turn()
    assert.equal(stats.claims, 2)
    await tick(999)
    assert.equal(stats.claims, 2)
    await tick(1)
    assert.equal(stats.claims, 3)
  })

  for (const pokeEndsBackOff of [false, true]) {
    test(`backs off while claims fail; a poke ends that: ${pokeEndsBackOff}`, async (t) => {
      const claim = t.mock.fn(async (): Promise<Item[]> => Promise.reject(new Error('broken')))
      const { work, lines, tick } = openLoop(t, { claim, pokeEndsBackOff })
      await turn()
      const pausesMs: number[] = []
      for (let i = 0; i < 7; i++) {
        const before = claim.mock.callCount()
        let ms = 0
        for (; claim.mock.callCount() === before; ms += 250) await tick(250)
        pausesMs.push(ms)
      }
      assert.deepEqual(pausesMs, [250, 500, 1000, 2000, 4000, 5000, 5000])
      const before = claim.mock.callCount()
      work.poke()
      await turn()
      assert.equal(claim.mock.callCount(), before + Number(pokeEndsBackOff))
      claim.mock.mockImplementation(async () => [])
      await tick(5000)
      assert.deepEqual(lines, ['cannot process items; retrying', 'items are processed again'])
    })
  }

  test('does not claim during a back-off because other work has ended', async (t) => {
    let isBroken = false
    const claim = t.mock.fn(async () => {
      if (isBroken) throw new Error('broken')
      return claim.mock.callCount() === 0 ? [{ token: 'a' }] : []
    })
    const { running, tick } = openLoop(t, { claim })
    await turn()
    isBroken = true
    await tick(1000)
    assert.equal(claim.mock.callCount(), 2)
    running.get('a')?.resolve()
    await turn()
    assert.equal(claim.mock.callCount(), 2)
  })

  test('logs nothing about an outage that the watch of the database logs', async (t) => {
    const claim = async () => Promise.reject(new Error('no database'))
    const { lines, tick } = openLoop(t, { claim, isOutage: () => true })
    await tick(250)
    assert.deepEqual(lines, [])
  })

  test('is cancelled when its lease is lost, and other work goes on', async (t) => {
    const lost: string[] = []
    const { work, add, tick } = openLoop(t, {
      run: ({ token }, signals) =>
        new Promise((resolve) => {
          signals.stopping.addEventListener('abort', () => resolve())
          signals.lost.addEventListener('abort', () => lost.push(token))
        }),
      renewal: {
        everyMs: 100,
        extend: async (leases) => leases.filter(({ token }) => token !== 'a'),
        release: async () => {},
      },
    })
    add('a', 'b')
    work.poke()
    await turn()
    await tick(100)
    assert.deepEqual(lost, ['a'])
  })

  test('is released when it was claimed too late, or does not end in time', async (t) => {
    const released: string[] = []
    const late = Promise.withResolvers<Item[]>()
    const claim = t.mock.fn(async () => (claim.mock.callCount() === 0 ? [{ token: 'slow' }] : late.promise))
    const release = async (leases: Item[]) => void released.push(...leases.map(({ token }) => token))
    const { work, listRunning } = openLoop(t, {
      claim,
      renewal: { everyMs: 1000, extend: async () => undefined, release },
    })
    await turn()
    work.poke()
    const closing = work.close(500)
    late.resolve([{ token: 'late' }])
    await turn()
    assert.deepEqual(released, ['late'])
    t.mock.timers.tick(500)
    await closing
    assert.deepEqual(released, ['late', 'slow'])
    assert.deepEqual(listRunning(), ['slow'])
  })
})
