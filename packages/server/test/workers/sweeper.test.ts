import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pino } from 'pino'
import { openSweeper } from '../../src/workers/periodic-work.ts'

function newLog() {
  const lines: { level: number; msg: string; removed?: number }[] = []
  return { lines, log: pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) }) }
}

const turn = () => new Promise(setImmediate)

describe('the sweeper', () => {
  test('has swept when it is open, and sweeps again every minute until it is closed', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    let sweeps = 0
    const { log } = newLog()
    const task = { name: 'test', sweep: async () => ++sweeps }
    const sweeper = await openSweeper({ cleanupTasks: [task], log })
    assert.equal(sweeps, 1)
    for (let minute = 2; minute <= 4; minute++) {
      t.mock.timers.tick(60_000)
      await turn()
      assert.equal(sweeps, minute)
    }
    await sweeper.close()
    t.mock.timers.tick(600_000)
    await turn()
    assert.equal(sweeps, 4)
  })

  test('does the other cleanup tasks when one fails, and that one again the next time', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const swept: string[] = []
    const { log, lines } = newLog()
    const failing = {
      name: 'failing',
      async sweep(): Promise<number> {
        swept.push('failing')
        throw new Error('the database is away')
      },
    }
    const throwing = {
      name: 'throwing',
      sweep(): Promise<number> {
        swept.push('throwing')
        throw new Error('at once')
      },
    }
    const working = {
      name: 'working',
      async sweep() {
        swept.push('working')
        return 3
      },
    }
    const sweeper = await openSweeper({ cleanupTasks: [failing, throwing, working], log })
    assert.deepEqual(swept, ['failing', 'throwing', 'working'])
    t.mock.timers.tick(60_000)
    await turn()
    assert.equal(swept.length, 6)
    assert.deepEqual(
      lines.slice(0, 3).map(({ msg, removed }) => [msg, removed]),
      [
        ['cannot clean up: failing', undefined],
        ['cannot clean up: throwing', undefined],
        ['cleaned up: working', 3],
      ],
    )
    await sweeper.close()
  })

  test('never sweeps twice at once, and closes when the sweep in hand is done', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    let gate = Promise.resolve()
    let sweeps = 0
    const { log } = newLog()
    const task = {
      name: 'slow',
      async sweep() {
        sweeps++
        await gate
        return 0
      },
    }
    const sweeper = await openSweeper({ cleanupTasks: [task], log })
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    t.mock.timers.tick(60_000)
    t.mock.timers.tick(60_000)
    await turn()
    assert.equal(sweeps, 2)
    let closed = false
    const closing = sweeper.close().then(() => {
      closed = true
    })
    await turn()
    assert.equal(closed, false)
    resolve()
    await closing
  })
})
