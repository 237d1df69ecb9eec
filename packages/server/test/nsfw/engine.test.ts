import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import type { ImageReport, Scores } from '../../src/domain/ports/engines.ts'
import { toCores } from '../../src/engines/nsfw/confinement.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  newAnimation,
  newLandscape,
  newPicture,
  noAbort,
  openTestEngine,
  openTinyModel,
  toContent,
} from './engine-support.ts'
import { paintWaves, toRoll } from './image-samples.ts'

const picture = await newPicture()
const tiny = await openTinyModel({ after })

test('a picture gets scores that sum to 1, and the engine says what it is', async (t) => {
  const { engine } = await openTestEngine(t, { profile: 'thorough' })
  const report = await engine.classify(
    toContent(await newLandscape({ width: 400, height: 300 }).jpeg().toBuffer()),
    noAbort,
  )
  assert.equal('frames' in report && report.isAnimated, false)
  const [{ index, clean, pornography, sexy }, ...others] = getFrames(report)
  assert.ok(others.length > 0)
  // The others are parts and turned views of the same frame.
  assert.ok([index, ...others.map((other) => other.index)].every((number) => number === 0))
  for (const score of [clean, pornography, sexy]) assert.ok(score >= 0 && score <= 1, `${score}`)
  assert.ok(Math.abs(clean + pornography + sexy - 1) < 1e-9)
  assert.ok(clean > 0.5, `clean is ${clean}`)
  assert.equal(engine.findState()?.version, 'nsfwjs MobileNetV2Mid+InceptionV3 int8')
  assert.equal(engine.findFault(), undefined)
})

test('every chosen frame has its own scores; content that is not a picture is never clean, and the process stays', async (t) => {
  const { engine, pids } = await openTestEngine(t, { models: [tiny] })
  const before = pids()
  const report = await engine.classify(toContent(await newAnimation()), noAbort)
  const frames = getFrames(report)
  assert.equal('frames' in report && report.isAnimated, true)
  assert.ok(frames.length > 1)
  assert.equal(new Set(frames.map(({ clean }) => clean)).size, frames.length)
  for (const bytes of [Buffer.from('not a picture'), picture.subarray(0, 40), Buffer.alloc(0)])
    assert.deepEqual(await engine.classify(toContent(bytes), noAbort), { unscanned: 'UnsupportedImage' })
  assert.deepEqual(pids(), before)
})

test('an ordinary GIF of 50 frames is scanned whole in balanced', async (t) => {
  const { engine } = await openTestEngine(t, { profile: 'balanced' })
  const frames = Array.from({ length: 50 }, (_, i) => paintWaves(320, 180, i * 25))
  const report = await engine.classify(toContent(await toRoll(frames).gif({ effort: 1 }).toBuffer()), noAbort)
  assert.ok('frames' in report)
  assert.deepEqual([report.framesTotal, report.doubt], [50, undefined])
  const scored = new Set(report.frames.map(({ index }) => index)).size
  assert.ok(scored >= 5, `${scored} frames were scored`)
})

test('frames beyond the budget of processor time are a doubt, and the process stays', async (t) => {
  const { engine, pids } = await openTestEngine(t, { models: [tiny], budgetMs: { fast: 0, balanced: 0, thorough: 0 } })
  const before = pids()
  const report = await engine.classify(toContent(await newAnimation()), noAbort)
  assert.ok('frames' in report)
  assert.deepEqual([report.frames.length, report.framesTotal, report.doubt], [1, 6, 'ScanLimitExceeded'])
  assert.deepEqual(pids(), before)
})

test('balanced asks for a second opinion from its suspicion level on, and only then', async (t) => {
  const settings = [
    { profile: 'fast' },
    { profile: 'balanced', suspicion: 2 },
    { profile: 'balanced', suspicion: -1 },
    { profile: 'thorough' },
  ] as const
  // The size to which one decoding for both models shrinks, so that it equals two decodings.
  const square = await newLandscape({ width: 598, height: 598 }).png().toBuffer()
  const scores: Scores[] = []
  const versions = new Set<string | undefined>()
  // The first view of a picture is scored at any price, and others are not compared.
  const budgetMs = { fast: 0, balanced: 0, thorough: 0 }
  for (const setting of settings) {
    const { engine } = await openTestEngine(t, { ...setting, budgetMs })
    scores.push(getFrames(await engine.classify(toContent(square), noAbort))[0])
    versions.add(engine.findState()?.verdictVersion)
    await engine.close()
  }
  const [fast, unsuspecting, suspecting, thorough] = scores
  assert.deepEqual(unsuspecting, fast)
  assert.deepEqual(suspecting, thorough)
  assert.notDeepEqual(fast, thorough)
  assert.equal(versions.size, settings.length)
})

test('processes are started as work comes, and all but one end when it is done', async (t) => {
  const { engine, pids } = await openTestEngine(t, { models: [tiny], processes: 2, idleMs: 300 })
  const [first] = pids()
  // The first picture waits for the second process.
  const second = waitFor(() => pids().length === 2)
  const reports = await Promise.all(
    Array.from({ length: 6 }, () =>
      engine.classify(
        toContent(picture, () => second),
        noAbort,
      ),
    ),
  )
  assert.equal(new Set(reports.map((report) => JSON.stringify(report))).size, 1)
  await waitFor(() => pids().length === 1)
  assert.ok(first !== undefined)
  getFrames(await engine.classify(toContent(picture), noAbort))
})

test('all processes but one are pinned to a core each, and a replacement takes the core of its predecessor', async (t) => {
  const usable = readCores('self')
  if (usable.length < 2) return t.diagnostic('there is one core')
  const { engine, pids } = await openTestEngine(t, { models: [tiny], processes: usable.length })
  const check = async () => {
    // Pictures that wait for all processes start them.
    const started = waitFor(() => pids().length === usable.length)
    const contents = Array.from({ length: usable.length + 1 }, () => toContent(picture, () => started))
    await Promise.all(contents.map((content) => engine.classify(content, noAbort)))
    const places = pids().map(readCores)
    const kept = places.filter(({ length }) => length === 1).flat()
    assert.deepEqual([places.length - kept.length, new Set(kept).size], [1, usable.length - 1])
  }
  await check()
  for (const victim of pids()) {
    process.kill(victim, 'SIGKILL')
    await waitFor(() => !pids().includes(victim))
    await check()
  }
})

test('processes are not pinned when there are fewer than cores', async (t) => {
  const usable = readCores('self')
  if (usable.length < 2) return t.diagnostic('there is one core')
  const { pids } = await openTestEngine(t, { models: [tiny], processes: usable.length - 1 })
  assert.deepEqual(pids().map(readCores), [usable])
})

const readCores = (pid: number | 'self') =>
  toCores(/^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '')

function getFrames(report: ImageReport): [Scores & { index: number }, ...(Scores & { index: number })[]] {
  assert.ok('frames' in report, JSON.stringify(report))
  const [first, ...others] = report.frames
  assert.ok(first !== undefined)
  return [first, ...others]
}
