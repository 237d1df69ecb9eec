import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test as nodeTest, type TestContext } from 'node:test'
import { type RunningClamd, superviseClamd } from '../../src/engines/clamav/supervisor.ts'
import { silentLog } from '../support/silent-log.ts'
import { waitFor } from '../support/wait-for.ts'
import { openFakeClamd, type Seen } from './fake-clamd.ts'

const test = (name: string, body: (t: TestContext) => Promise<void>) => nodeTest(name, { timeout: 60_000 }, body)

/** A fake clamd that runs until it is killed or told to crash. */
function newProcess(pid: number) {
  const exit = Promise.withResolvers<void>()
  const killed: string[] = []
  const clamd: RunningClamd = {
    pid,
    exited: exit.promise,
    whenReloaded: async () => true,
    readProcessorMs: () => 0,
    kill(signal) {
      killed.push(signal)
      exit.resolve()
    },
  }
  return { clamd, killed, fall: () => exit.resolve() }
}

/** Waits some turns of the event loop, for work without a timer. */
async function turn(times = 20) {
  for (let i = 0; i < times; i++) await new Promise(setImmediate)
}

/** Mocks timers, also those of `node:timers/promises` that the supervisor imports by name. */
function mockTimers(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  t.mock.method(performance, 'now', () => Date.now())
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.timers.reset()
    syncBuiltinESMExports()
  })
  return t.mock.timers
}

describe('the supervisor', () => {
  test('restarts clamd after a crash, with pauses that double up to a limit', async (t) => {
    const timers = mockTimers(t)
    const startedAt: number[] = []
    const supervisor = superviseClamd({
      socket: '/nowhere/clamd.sock',
      log: silentLog,
      async start() {
        startedAt.push(Date.now())
        throw new Error('it does not come up')
      },
    })
    await turn()
    for (let ms = 0; ms < 120_000; ms += 100) {
      timers.tick(100)
      await turn(3)
    }
    const pauses = startedAt.slice(1).map((at, i) => at - (startedAt[i] ?? 0))
    assert.ok(pauses.length >= 9, pauses.join())
    assert.ok((pauses[0] ?? 0) <= 200, pauses.join())
    for (const [i, pause] of pauses.slice(0, -1).entries()) {
      const next = pauses[i + 1] ?? 0
      assert.ok(next === Math.min(30_000, 2 * pause), pauses.join())
    }
    assert.equal(supervisor.findRunning(), undefined)
    await supervisor.close()
  })

  test('restarts a clamd that ran for long without a long pause', async (t) => {
    const timers = mockTimers(t)
    const fake = await openFakeClamd(t)
    const processes: ReturnType<typeof newProcess>[] = []
    let failures = 6
    const supervisor = superviseClamd({
      socket: fake.address.path,
      log: silentLog,
      async start() {
        if (failures-- > 0) throw new Error('not yet')
        const process = newProcess(processes.length + 1)
        processes.push(process)
        return process.clamd
      },
    })
    while (processes.length === 0) {
      await turn(3)
      timers.tick(100)
    }
    await turn()
    assert.equal(supervisor.findRunning()?.pid, 1)
    timers.tick(61_000)
    await turn()
    processes[0]?.fall()
    await turn()
    timers.tick(200)
    await turn()
    assert.equal(supervisor.findRunning()?.pid, 2)
    const closing = supervisor.close()
    await turn()
    timers.tick(1000)
    await closing
  })

  test('kills a clamd that does not answer, and starts the next', async (t) => {
    let answers = true
    const fake = await openFakeClamd(t, { onPing: (seen: Seen) => seen.socket.end(answers ? 'PONG\0' : 'BUSY\0') })
    const processes: ReturnType<typeof newProcess>[] = []
    const supervisor = superviseClamd({
      socket: fake.address.path,
      log: silentLog,
      async start() {
        answers = true
        const process = newProcess(processes.length + 1)
        processes.push(process)
        return process.clamd
      },
    })
    await supervisor.firstTry
    await waitFor(() => fake.connections.length === 1)
    answers = false
    await waitFor(() => processes.length === 2)
    assert.deepEqual(processes[0]?.killed, ['SIGKILL'])
    await waitFor(() => supervisor.findRunning()?.pid === 2)
    assert.deepEqual(processes[1]?.killed, [])
    await supervisor.close()
    assert.deepEqual(processes[1]?.killed, ['SIGTERM'])
  })

  test('does not blame clamd for a stall of our own event loop', async (t) => {
    const socket = join(mkdtempSync(join(tmpdir(), 'assay-supervisor-')), 'clamd.sock')
    // In a process of its own, because a server in this process would stall too.
    const program = `require('net').createServer((socket) => {
        socket.on('error', () => {}).on('data', () => socket.end('PONG\\0'))
      })
      .listen(process.argv[1], () => console.log('listens'))`
    const server = spawn(process.execPath, ['-e', program, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => server.kill())
    await once(server.stdout, 'data')
    const { clamd, killed } = newProcess(1)
    let checks = 0
    const readProcessorMs = () => {
      checks++
      return 0
    }
    const start = async () => ({ ...clamd, readProcessorMs })
    const supervisor = superviseClamd({ socket, log: silentLog, start, pingTimeoutMs: 300, pingEveryMs: 1 })
    t.after(supervisor.close)
    await supervisor.firstTry
    const stalled = new Int32Array(new SharedArrayBuffer(4))
    // Several stalls, each longer than a ping may take and with a ping under way.
    for (let i = 0; i < 6; i++) {
      Atomics.wait(stalled, 0, 0, 400)
      await new Promise(setImmediate)
    }
    const before = checks
    await waitFor(() => checks > before + 5)
    assert.deepEqual(killed, [])
  })

  test('gives a clamd more time that works and does not answer', async (t) => {
    const fake = await openFakeClamd(t, { onPing: ({ socket }: Seen) => socket.end('BUSY\0') })
    const { clamd, killed } = newProcess(1)
    const isLeftAlone: boolean[] = []
    const readProcessorMs = () => {
      isLeftAlone.push(killed.length === 0)
      return 10 * isLeftAlone.length
    }
    const start = async () => ({ ...clamd, readProcessorMs })
    const supervisor = superviseClamd({ socket: fake.address.path, log: silentLog, start, pingEveryMs: 1 })
    await waitFor(() => killed.length > 0)
    assert.ok(isLeftAlone.length > 10, `${isLeftAlone.length} pings`)
    await supervisor.close()
  })

  test('kills a clamd whose socket is gone', async () => {
    const processes: ReturnType<typeof newProcess>[] = []
    const supervisor = superviseClamd({
      socket: '/nowhere/clamd.sock',
      log: silentLog,
      async start() {
        const process = newProcess(processes.length + 1)
        processes.push(process)
        return process.clamd
      },
    })
    await waitFor(() => processes.length === 2)
    assert.deepEqual(processes[0]?.killed, ['SIGKILL'])
    await supervisor.close()
  })

  test('tells when the first attempt is over, successful or not', async (t) => {
    const fake = await openFakeClamd(t)
    const up = superviseClamd({ socket: fake.address.path, log: silentLog, start: async () => newProcess(1).clamd })
    await up.firstTry
    assert.equal(up.findRunning()?.pid, 1)
    await up.close()
    const down = superviseClamd({
      socket: fake.address.path,
      log: silentLog,
      start: () => Promise.reject(new Error('it does not come up')),
    })
    await down.firstTry
    assert.equal(down.findRunning(), undefined)
    await down.close()
  })

  test('closed while clamd starts, ends it and starts no other', async (t) => {
    const fake = await openFakeClamd(t)
    const started = Promise.withResolvers<RunningClamd>()
    let starts = 0
    const supervisor = superviseClamd({
      socket: fake.address.path,
      log: silentLog,
      start() {
        starts++
        return started.promise
      },
    })
    const closing = supervisor.close()
    const process = newProcess(1)
    started.resolve(process.clamd)
    await closing
    assert.deepEqual(process.killed, ['SIGTERM'])
    assert.equal(starts, 1)
  })

  test('closed in a pause, starts no other', async () => {
    let starts = 0
    const supervisor = superviseClamd({
      socket: '/nowhere/clamd.sock',
      log: silentLog,
      async start() {
        starts++
        throw new Error('no')
      },
    })
    await waitFor(() => starts === 1)
    await supervisor.close()
    assert.equal(starts, 1)
  })

  test('closed, kills a clamd that ignores SIGTERM', async (t) => {
    const timers = mockTimers(t)
    const fake = await openFakeClamd(t)
    const stubborn = newProcess(1)
    const killed: string[] = []
    const clamd: RunningClamd = {
      ...stubborn.clamd,
      kill(signal) {
        killed.push(signal)
        if (signal === 'SIGKILL') stubborn.fall()
      },
    }
    const supervisor = superviseClamd({ socket: fake.address.path, log: silentLog, start: async () => clamd })
    await supervisor.firstTry
    const closing = supervisor.close()
    await turn()
    timers.tick(5000)
    await closing
    assert.deepEqual(killed, ['SIGTERM', 'SIGKILL'])
  })
})
