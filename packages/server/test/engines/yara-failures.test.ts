import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isRunning } from '../../../../acceptance/support/processes.ts'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  brokenRule,
  endlessRule,
  markerRule,
  noAbort,
  openTestYara,
  slowBytes,
  toContent,
  whyNot,
} from './yara-support.ts'

const marked = () => toContent(Buffer.from('assay-marker'))
const slow = () => toContent(slowBytes)
type Engine = Awaited<ReturnType<typeof openTestYara>>['engine']

/** Repeats the scan while the machine is too busy to give the process its processor time before the answer is overdue. */
async function scanSlow(engine: Engine) {
  for (;;) {
    try {
      return await engine.scan(slow(), noAbort)
    } catch (error) {
      if (!(error instanceof EngineDown)) throw error
    }
  }
}

const never = { findings: [], doubts: ['ScanLimitExceeded'], suspectsContainer: false }

// Before the first test begins: the check starts a process, which a test would take for one of its own.
const whyNone = { libyara: await whyNot('libyara'), 'yara-x': await whyNot('yara-x') }

for (const backend of ['libyara', 'yara-x'] as const) {
  describe(`YARA with ${backend}, when things go wrong`, { skip: whyNone[backend] }, () => {
    /** The engine of all tests that need no other options and leave it with its process. */
    let shared: Awaited<ReturnType<typeof openTestYara>>
    let close: () => Promise<void>
    const escapes: string[] = []
    before(async () => {
      const t = {
        after(given: () => Promise<void>) {
          close = given
        },
      }
      const onEscape = (parser: string) => escapes.push(parser)
      shared = await openTestYara(t, { backend, rules: { 'marker.yar': markerRule }, onEscape })
    })
    after(() => close())

    test('adding, breaking and removing a file takes effect without a failed scan under load', async (t) => {
      const { engine, write, remove, pids } = await openTestYara(t, {
        backend,
        rules: { 'marker.yar': markerRule },
        pollMs: 100,
      })
      let isOver = false
      let scans = 0
      // More clients than the one process. They pause, because the rules must be compiled meanwhile on the same cores.
      const load = Array.from({ length: 3 }, async () => {
        for (; !isOver; await pause(50)) {
          const { findings, doubts } = await engine.scan(marked(), noAbort)
          assert.ok(findings.includes('marker'))
          assert.deepEqual(doubts, [])
          scans++
        }
      })
      /** Waits for more scans than the three in progress, so that some of them began after this call. */
      const scansMore = () => {
        const before = scans
        return waitFor(() => scans > before + 6)
      }
      const finds = async (...names: string[]) => {
        await scansMore()
        assert.deepEqual((await engine.scan(marked(), noAbort)).findings.sort(), names)
      }
      try {
        await finds('marker')
        write('second.yar', 'rule second { condition: true }')
        await waitFor(() => engine.findState()?.signatures === 2)
        await finds('marker', 'second')
        write('second.yar', brokenRule)
        await waitFor(() => engine.listRefused().length === 1)
        // The previous version of the file stays in use.
        await finds('marker', 'second')
        remove('second.yar')
        await waitFor(() => engine.listRefused().length === 0)
        await finds('marker')
      } finally {
        isOver = true
        await Promise.all(load)
      }
      await waitFor(() => pids().length === 1)
    })

    test('a scan whose process is killed is tried again and right', async () => {
      const { engine, pids } = shared
      const [pid] = pids()
      assert.ok(pid !== undefined)
      let reads = 0
      const content = {
        ...toContent(Buffer.from('assay-marker'.repeat(10)), { chunkBytes: 12 }),
        async *read() {
          reads++
          yield Buffer.from('assay-marker')
          if (reads === 1) {
            process.kill(pid, 'SIGKILL')
            await waitFor(() => !isRunning(pid))
          }
          yield Buffer.from('assay-marker'.repeat(9))
        },
      }
      assert.deepEqual(await engine.scan(content, noAbort), {
        findings: ['marker'],
        doubts: [],
        suspectsContainer: false,
      })
      assert.equal(reads, 2)
    })

    test('content whose process dies twice has no result, and the engine is there for the next', async () => {
      const { engine, pids } = shared
      let reads = 0
      const content = {
        ...toContent(Buffer.from('assay-marker'), { chunkBytes: 12 }),
        async *read() {
          reads++
          // The second time by the signal with which the filter of the jail kills.
          for (const pid of pids()) process.kill(pid, reads === 1 ? 'SIGKILL' : 'SIGSYS')
          await waitFor(() => pids().length === 0)
          yield Buffer.from('assay-marker')
        },
      }
      await assert.rejects(engine.scan(content, noAbort), EngineDown)
      assert.equal(reads, 2)
      assert.deepEqual(escapes, ['yara'])
      assert.deepEqual((await engine.scan(marked(), noAbort)).findings, ['marker'])
      assert.notEqual(engine.findState(), undefined)
    })

    test('a scan whose process hangs is tried again, and has no result when the next one hangs too', async (t) => {
      const { engine, pids } = await openTestYara(t, { backend, rules: { 'marker.yar': markerRule }, stallMs: 3000 })
      const stopped: number[] = []
      const stopping = (most: number) => ({
        ...toContent(Buffer.from('assay-marker'), { chunkBytes: 12 }),
        async *read() {
          const [pid = 0] = pids()
          if (stopped.length < most) {
            stopped.push(pid)
            process.kill(pid, 'SIGSTOP')
          }
          yield Buffer.from('assay-marker')
        },
      })
      assert.deepEqual((await engine.scan(stopping(1), noAbort)).findings, ['marker'])
      assert.equal(stopped.length, 1)
      await assert.rejects(engine.scan(stopping(3), noAbort), EngineDown)
      assert.equal(new Set(stopped).size, 3)
      assert.deepEqual((await engine.scan(marked(), noAbort)).findings, ['marker'])
      assert.ok(!stopped.some(isRunning))
    })

    test('a scan that takes too long is never clean, and is not tried again', async (t) => {
      const { engine } = await openTestYara(t, {
        backend,
        scanMs: 200,
        rules: { 'endless.yar': endlessRule, 'marker.yar': markerRule },
      })
      assert.deepEqual(await scanSlow(engine), never)
      const next = await engine.scan(marked(), noAbort)
      assert.deepEqual(next, { findings: ['marker'], doubts: [], suspectsContainer: false })
    })

    test('a caller who leaves gets its reason at once, and the process stays', async () => {
      const { engine, pids } = shared
      const before = pids()
      const reason = new Error('the caller left')
      const leaving = new AbortController()
      const endless = {
        ...toContent(Buffer.alloc(1000), { chunkBytes: 100 }),
        async *read() {
          yield Buffer.alloc(100)
          leaving.abort(reason)
          await new Promise(() => {})
        },
      }
      await assert.rejects(engine.scan(endless, leaving), reason)
      await assert.rejects(engine.scan(marked(), { signal: AbortSignal.abort(reason) }), reason)
      assert.deepEqual((await engine.scan(marked(), noAbort)).findings, ['marker'])
      assert.deepEqual(pids(), before)
    })

    test('an error of reading the content is thrown unchanged, and the process stays', async () => {
      const { engine, pids } = shared
      const before = pids()
      const failing = {
        ...toContent(Buffer.alloc(1000), { chunkBytes: 100 }),
        async *read() {
          yield Buffer.alloc(100)
          throw new Error('the store is away')
        },
      }
      await assert.rejects(engine.scan(failing, noAbort), /the store is away/)
      assert.deepEqual((await engine.scan(marked(), noAbort)).findings, ['marker'])
      assert.deepEqual(pids(), before)
    })

    test('a process does not outlive a killed parent, even in a scan without end', async () => {
      const holder = spawn(process.execPath, [fileURLToPath(new URL('yara-holder.ts', import.meta.url)), backend], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [line] = await once(holder.stdout, 'data')
      const pid = Number(line)
      assert.ok(isRunning(pid))
      holder.kill('SIGKILL')
      await waitFor(() => !isRunning(pid))
    })
  })
}

test('padding that exhausts the count of matches is never clean', { skip: whyNone.libyara }, async (t) => {
  const bytes = Buffer.from('ab'.repeat(1_100_000))
  const rule = 'rule count { strings: $a = "ab" condition: #a == 1100000 }'
  const { engine } = await openTestYara(t, { backend: 'libyara', rules: { 'count.yar': rule } })
  assert.deepEqual(await engine.scan(toContent(bytes), noAbort), never)
})

test('rules that cannot be loaded make the engine active and down, never clean', async (t) => {
  const { engine } = await openTestYara(t, { rules: { 'marker.yar': markerRule }, compileMs: 1 })
  assert.equal(engine.isActive(), true)
  assert.equal(engine.findState(), undefined)
  await assert.rejects(engine.scan(marked(), noAbort), EngineDown)
})

test('scans beyond the most that may wait are rejected, and those that wait too long', async (t) => {
  const { engine } = await openTestYara(t, {
    rules: { 'endless.yar': endlessRule },
    scanMs: 200,
    waitMs: 50,
    maxWaiting: 1,
  })
  const running = scanSlow(engine)
  const waiting = assert.rejects(engine.scan(marked(), noAbort), /busy/)
  await assert.rejects(engine.scan(marked(), noAbort), /Too many/)
  await waiting
  assert.deepEqual(await running, never)
})

test('closing ends a running scan, and leaves no process', async (t) => {
  const { engine, pids } = await openTestYara(t, { rules: { 'endless.yar': endlessRule } })
  const scan = assert.rejects(engine.scan(slow(), noAbort), EngineDown)
  await engine.close()
  await scan
  assert.deepEqual(pids(), [])
  await assert.rejects(engine.scan(marked(), noAbort), EngineDown)
})
