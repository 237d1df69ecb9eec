import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { makePng } from '../../../../acceptance/support/hostile-images.ts'
import { isRunning, isStopped } from '../../../../acceptance/support/processes.ts'
import { EngineBusy, EngineDown } from '../../src/domain/ports/engines.ts'
import type { ImageEngineDeps } from '../../src/engines/nsfw/image-engine.ts'
import { waitFor } from '../support/wait-for.ts'
import { newPicture, noAbort, openTestEngine, openTinyModel, toContent } from './engine-support.ts'

const picture = await newPicture()
const model = await openTinyModel({ after })
const open = (t: Parameters<typeof openTestEngine>[0], options: Partial<ImageEngineDeps> = {}) =>
  openTestEngine(t, { models: [model], ...options })
/** The engine of all tests that need no other options and leave it with one process. */
const shared = await open({ after }, { maxWaiting: 3 })
const isClassified = (report: object) => assert.ok('frames' in report, JSON.stringify(report))
const kill = (pid: number) => process.kill(pid, 'SIGKILL')

/** Stops the process: it receives the remaining bytes and does not work on them. */
const stop = async (pid: number) => {
  process.kill(pid, 'SIGSTOP')
  await waitFor(() => isStopped(pid))
}

test('a picture whose process is killed at work is classified again in another', async () => {
  const { engine, pids } = shared
  const [first = 0] = pids()
  let reads = 0
  const content = toContent(picture, async (times) => {
    reads = times
    if (times > 1) return
    await stop(first)
    setImmediate(() => kill(first))
  })
  isClassified(await engine.classify(content, noAbort))
  assert.equal(reads, 2)
  assert.ok(!pids().includes(first))
})

test('a picture whose process hangs is classified in another, and has no result when that one hangs too', async (t) => {
  const { engine, pids } = await open(t, { stallMs: 3000 })
  const stopped: number[] = []
  const stopFirst = (most: number) =>
    toContent(picture, async () => {
      const [pid = 0] = pids()
      if (stopped.length >= most) return
      stopped.push(pid)
      await stop(pid)
    })
  isClassified(await engine.classify(stopFirst(1), noAbort))
  assert.equal(stopped.length, 1)
  await assert.rejects(
    engine.classify(stopFirst(3), noAbort),
    (error) => error instanceof EngineDown && !(error instanceof EngineBusy),
  )
  assert.equal(new Set(stopped).size, 3)
  isClassified(await engine.classify(toContent(picture), noAbort))
  assert.ok(!stopped.some(isRunning))
})

test('a process that answers too late is ended, and the picture classified in another', async (t) => {
  const { engine, pids } = await open(t, { answerMs: 8000 })
  const [first = 0] = pids()
  const content = toContent(picture, async (times) => {
    if (times === 1) await stop(first)
  })
  isClassified(await engine.classify(content, noAbort))
  assert.ok(!isRunning(first))
})

test('a picture that kills two processes has no result, and other pictures are not affected', async (t) => {
  const escapes: string[] = []
  const { engine, pids } = await open(t, { processes: 2, onEscape: (parser) => escapes.push(parser) })
  const [first] = pids()
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  let bystanderReads = 0
  const bystander = engine.classify(
    toContent(picture, (times) => {
      bystanderReads = times
      begun.resolve()
      return gate.promise
    }),
    noAbort,
  )
  await begun.promise
  let reads = 0
  const deadly = engine.classify(
    toContent(picture, async (times) => {
      reads = times
      const victims = pids().filter((pid) => pid !== first)
      assert.equal(victims.length, 1)
      // The second time by the signal with which the filter of the jail kills.
      for (const victim of victims) process.kill(victim, times === 1 ? 'SIGKILL' : 'SIGSYS')
      await waitFor(() => pids().every((pid) => !victims.includes(pid)))
    }),
    noAbort,
  )
  const waiting = [1, 2, 3].map(() => engine.classify(toContent(picture), noAbort))
  await assert.rejects(deadly, EngineDown)
  assert.equal(reads, 2)
  assert.deepEqual(escapes, ['images'])
  for (const report of await Promise.all(waiting)) isClassified(report)
  gate.resolve()
  isClassified(await bystander)
  assert.equal(bystanderReads, 1)
  assert.notEqual(engine.findState(), undefined)
})

test('pictures beyond the most that may wait are rejected, and a caller who leaves frees its place in the queue', async () => {
  const { engine } = shared
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const running = engine.classify(
    toContent(picture, () => {
      begun.resolve()
      return gate.promise
    }),
    noAbort,
  )
  await begun.promise
  const leaving = new AbortController()
  const left = engine.classify(toContent(picture), leaving)
  const waiting = [1, 2].map(() => engine.classify(toContent(picture), noAbort))
  assert.equal(engine.countWaiting(), 3)
  await assert.rejects(engine.classify(toContent(picture), noAbort), EngineBusy)
  const reason = new Error('the caller left')
  leaving.abort(reason)
  await assert.rejects(left, reason)
  assert.equal(engine.countWaiting(), 2)
  gate.resolve()
  for (const report of await Promise.all([running, ...waiting])) isClassified(report)
  await assert.rejects(engine.classify(toContent(picture), leaving), reason)
})

test('a caller comes before pictures of background jobs that wait already', async () => {
  const { engine } = shared
  const gate = Promise.withResolvers<void>()
  const begun: string[] = []
  const { signal } = noAbort
  const classify = (name: string, order?: number) =>
    engine.classify(
      toContent(picture, () => {
        begun.push(name)
        return gate.promise
      }),
      { signal, ...(order === undefined ? {} : { job: { accountId: 'a', order, stopping: signal } }) },
    )
  const running = classify('first', 0)
  await waitFor(() => begun.length === 1)
  const others = [classify('job 2', 2), classify('job 1', 1), classify('caller')]
  gate.resolve()
  for (const report of await Promise.all([running, ...others])) isClassified(report)
  assert.deepEqual(begun, ['first', 'caller', 'job 1', 'job 2'])
})

test('a caller who leaves while the picture is classified costs no process', async () => {
  const { engine, pids } = shared
  const before = pids()
  const leaving = new AbortController()
  isClassified(
    await engine.classify(
      toContent(picture, () => leaving.abort()),
      leaving,
    ),
  )
  assert.deepEqual(pids(), before)
})

test('an error of reading the content is thrown unchanged, and the process stays', async () => {
  const { engine, pids } = shared
  const before = pids()
  const failing = toContent(picture, () => Promise.reject(new Error('the store is away')))
  await assert.rejects(engine.classify(failing, noAbort), /the store is away/)
  isClassified(await engine.classify(toContent(picture), noAbort))
  assert.deepEqual(pids(), before)
})

test('a picture that takes too much memory is not clean, and the next one is classified', async (t) => {
  const { engine, pids } = await open(t, { maxMemoryMb: 150 })
  const before = pids()
  isClassified(await engine.classify(toContent(picture), noAbort))
  assert.deepEqual(pids(), before)
  assert.deepEqual(await engine.classify(toContent(newLargePicture()), noAbort), {
    unscanned: 'ScanLimitExceeded',
  })
  isClassified(await engine.classify(toContent(picture), noAbort))
  assert.notDeepEqual(pids(), before)
})

test('without a model the engine is down and says why, and it comes up by itself when there is one', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-models-'))
  t.after(() => rmSync(dir, { recursive: true }))
  chmodSync(dir, 0o755)
  const path = join(dir, basename(model.path))
  const { engine, pids } = await open(t, { models: [{ ...model, path }] })
  assert.equal(engine.findState(), undefined)
  assert.match(engine.findFault() ?? '', /cannot be started: .*model\.onnx/)
  assert.deepEqual(pids(), [])
  await assert.rejects(engine.classify(toContent(picture), noAbort), EngineDown)
  copyFileSync(model.path, path)
  await waitFor(() => engine.findState() !== undefined)
  isClassified(await engine.classify(toContent(picture), noAbort))
  assert.equal(engine.findFault(), undefined)
})

test('a process does not outlive a killed parent, even one that hangs', async () => {
  const program = fileURLToPath(new URL('engine-holder.ts', import.meta.url))
  const holder = spawn(process.execPath, [program, dirname(model.path)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(holder.stdout, 'data')
  const pid = Number(line)
  assert.ok(isRunning(pid))
  await stop(pid)
  holder.kill('SIGKILL')
  await waitFor(() => !isRunning(pid))
})

test('closing ends running and waiting work, and leaves no process', async (t) => {
  const { engine, pids } = await open(t, { processes: 2 })
  const begun = Promise.withResolvers<void>()
  const endless = toContent(picture, () => {
    begun.resolve()
    return new Promise(() => {})
  })
  const working = assert.rejects(engine.classify(endless, noAbort), EngineDown)
  await begun.promise
  const waiting = assert.rejects(engine.classify(toContent(picture), noAbort), EngineDown)
  await engine.close()
  await Promise.all([working, waiting])
  assert.deepEqual(pids(), [])
  await assert.rejects(engine.classify(toContent(picture), noAbort), EngineDown)
})

/** The beginning of an interlaced picture, which a decoder must hold whole: 75 MB. Viewers show what there is of it. */
const newLargePicture = () =>
  makePng({ width: 5000, height: 5000, colour: 2, interlaced: true, rows: Buffer.alloc(1_000_000) })
