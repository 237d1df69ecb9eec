import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sum, toMedian, watchCores } from './children.ts'
import { checkAll } from './nsfw-check.ts'
import { benchFrames } from './nsfw-frames.ts'
import { benchMemory } from './nsfw-memory.ts'
import { openPictures } from './nsfw-pictures.ts'
import { type NsfwPeer, openSetting, type Setting } from './nsfw-setting.ts'
import type { Row } from './results.ts'

/** Compared settings: Assay, its decoding and inference alone, and nsfwjs in three variants. */
type Peer = 'assay' | 'floor' | NsfwPeer

/**
 * Uploads in a turn, or pictures in each process: the same pictures for all. Turns are as short as that allows,
 * because the speed of the machine varies over time.
 */
const turns: Record<Peer, number> = { assay: 96, floor: 48, wasm: 48, kind: 48, script: 4 }
const names: Record<Peer, string> = {
  assay: 'Assay',
  floor: 'decoding and inference alone',
  wasm: 'nsfwjs, WASM, jpeg-js',
  kind: 'nsfwjs, WASM, sharp, a process for each core',
  script: 'nsfwjs, pure JavaScript',
}
/** These two alternate, because the speed of the machine varies by more than their difference. */
const closeRace: Peer[] = ['floor', 'assay', 'assay', 'floor', 'floor', 'assay', 'assay', 'floor']
const connections = 4
const pictureCount = 48
/** Pictures of the slowest peer, and those that wake up idle processes. */
const fewPictures = 4
/** Warm-up of each program before its first turn. */
const warmSeconds = 10

/**
 * NSFW scans by upload, with authentication, admission and a stored result, against nsfwjs and against the model alone.
 */
export async function benchNsfw(): Promise<Row[]> {
  process.stderr.write(`  ${process.arch}\n`)
  const dir = mkdtempSync(join(tmpdir(), 'assay-bench-pictures-'))
  try {
    const pictures = await openPictures(dir)
    const half = await pictures.make(0.5, pictureCount)
    const two = await pictures.make(2, pictureCount)
    const [one, twelve] = [await pictures.makeSharp(1, 8), await pictures.makeSharp(12, 8)]
    const peers: NsfwPeer[] = ['wasm', 'kind', 'script']
    const setting = await openSetting({ peers, hasFloor: true })
    const rows = await measure(setting, { half, two, one, twelve }, peers).finally(setting.close)
    const memory = await benchMemory(pictures)
    // The last, because it runs in this process, where sharp then opens no files any more.
    return [...rows, ...(await benchFrames(dir)), ...memory]
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

type Files = Record<'half' | 'two' | 'one' | 'twelve', string[]>

async function measure(setting: Setting, { half, two, one, twelve }: Files, peers: NsfwPeer[]): Promise<Row[]> {
  const simpleHalf = await checkAll(setting, half, peers)
  const simpleTwo = await checkAll(setting, two, [])
  const ofHalf = await compare(setting, '0.5 MP', half, ['wasm', ...closeRace, 'kind'], 4)
  const ofTwo = await compare(setting, '2 MP', two, ['wasm', ...closeRace, 'kind'], 2)
  const [simple, simpleOfTwo] = [`0.5 MP, ${onceText(simpleHalf)}`, `2 MP, ${onceText(simpleTwo)}`]
  const ofSimple = await compare(setting, simple, simpleHalf, ['wasm', 'floor', 'assay', 'kind'], 2)
  const ofSimpleTwo = await compare(setting, simpleOfTwo, simpleTwo, ['wasm', 'floor', 'assay', 'kind'], 2)
  const few = half.filter((_, i) => i % (half.length / fewPictures) === 0)
  const ofFew = await compare(setting, '0.5 MP', few, ['assay', 'script'], 2)
  return [
    toRow('0.5 MP', ofHalf, 'wasm', 'at least 10'),
    toRow('2 MP', ofTwo, 'wasm', 'at least 15'),
    toRow('0.5 MP', ofFew, 'script', 'at least 50'),
    toRow('0.5 MP', ofHalf, 'kind', 'at least 5'),
    toRow('2 MP', ofTwo, 'kind', 'at least 5'),
    toRow('0.5 MP', ofHalf, 'floor', 'at least 0.8'),
    toRow('2 MP', ofTwo, 'floor', 'at least 0.7'),
    toRow(simple, ofSimple, 'wasm', ''),
    toRow(simple, ofSimple, 'kind', ''),
    toRow(simpleOfTwo, ofSimpleTwo, 'wasm', ''),
    toRow(simpleOfTwo, ofSimpleTwo, 'kind', ''),
    ...(await compareLatency(setting, one, twelve)),
  ]
}

const onceText = (files: string[]) => `${files.length} of ${pictureCount} that are looked at once`

function toRow(size: string, rates: Rates, against: Peer, wanted: string): Row {
  return {
    what: `NSFW scans, JPEG of ${size}, ${connections} connections`,
    ours: toText(rates.assay),
    against: `${names[against]}: ${toText(rates[against])}`,
    ratio: rates.assay.perSecond / rates[against].perSecond,
    wanted,
  }
}

const toRate = (perSecond: number) => `${perSecond.toFixed(perSecond < 10 ? 2 : 1)}/s`

/** Pictures per second, and milliseconds of processor time for each. */
type Rate = { perSecond: number; cpuMs: number }
type Rates = Record<Peer, Rate>

const toText = ({ perSecond, cpuMs }: Rate) => `${toRate(perSecond)}, ${cpuMs.toFixed(1)} ms`

/** Measures all in turn, then in the opposite order, so that the order does not matter; returns the rates. */
async function compare(setting: Setting, size: string, files: string[], peers: Peer[], passes: number): Promise<Rates> {
  const found: Record<Peer, Rate[]> = { assay: [], floor: [], wasm: [], kind: [], script: [] }
  for (const peer of new Set(peers)) await warm(setting, peer, files)
  for (let pass = 0; pass < passes; pass++) {
    for (const peer of pass % 2 === 0 ? peers : peers.toReversed()) {
      // The service ends idle processes.
      if (peer !== 'script') await run(setting, peer, files.slice(0, fewPictures), 1)
      await setting.whenIdle()
      const rounds = turns[peer] / files.length
      const { result, used, cpuSeconds } = await watchCores(setting.cpu, () => run(setting, peer, files, rounds))
      const count = turns[peer] * (peer === 'floor' ? setting.floor.length : 1)
      // Processor time is more reliable than the rate when the machine has other work.
      const cpuMs = (cpuSeconds * 1000) / count
      process.stderr.write(
        `  ${size} ${peer}: ${toRate(result)} ${used}; ${cpuMs.toFixed(1)} ms of processor time each\n`,
      )
      found[peer].push({ perSecond: result, cpuMs })
    }
  }
  return Object.fromEntries(Object.entries(found).map(([peer, rates]) => [peer, toWholeRate(rates)])) as Rates
}

/** Mean of turns with the same number of pictures. */
const toWholeRate = (rates: Rate[]): Rate => ({
  perSecond: rates.length / sum(rates.map(({ perSecond }) => 1 / perSecond)),
  cpuMs: sum(rates.map(({ cpuMs }) => cpuMs)) / rates.length,
})

async function warm(setting: Setting, peer: Peer, files: string[]) {
  const end = performance.now() + warmSeconds * 1000
  while (performance.now() < end) await run(setting, peer, files, 1)
}

async function run(setting: Setting, peer: Peer, files: string[], rounds: number): Promise<number> {
  if (peer === 'floor') {
    const { floor } = setting
    // Processes begin at different pictures.
    const toFirst = (i: number) => Math.floor((i * files.length) / floor.length)
    const work = floor.map((worker, i) => worker.run<{ perSecond: number }>({ files, rounds, first: toFirst(i) }))
    return sum((await Promise.all(work)).map(({ perSecond }) => perSecond))
  }
  return (await setting.load.run({ target: toTarget(setting, peer), files, rounds, connections })).perSecond
}

function toTarget({ service, getPeer }: Setting, peer: 'assay' | NsfwPeer) {
  if (peer === 'assay') return { url: service.url, headers: service.headers, expected: '"classification_clean"' }
  return { url: getPeer(peer).url, headers: [], expected: '"className"' }
}

/**
 * The same pictures with more pixels, one at a time. Each is compared with itself: they are few, of 0.4 to 3.7 MB, and
 * the median of all durations would depend on two of them.
 */
async function compareLatency(setting: Setting, one: string[], twelve: string[]): Promise<Row[]> {
  const found = { one: newTimes(one), twelve: newTimes(twelve) }
  const target = toTarget(setting, 'assay')
  for (let pass = 0; pass < 4; pass++) {
    for (const size of pass % 2 === 0 ? (['one', 'twelve'] as const) : (['twelve', 'one'] as const)) {
      const { files, all, each } = found[size]
      await setting.load.run({ target, files, rounds: 1, connections: 1 })
      const { p50Ms, p50MsOfEach } = await setting.load.run({ target, files, rounds: 3, connections: 1 })
      process.stderr.write(`  ${size} MP: half of them within ${p50Ms.toFixed(1)} ms\n`)
      all.push(p50Ms)
      for (const [i, ms] of p50MsOfEach.entries()) each[i]?.push(ms)
    }
  }
  const ratios = found.twelve.each.map((times, i) => toMedian(times) / toMedian(found.one.each[i] ?? []))
  const [twelveMs, oneMs] = [toMedian(found.twelve.all), toMedian(found.one.all)]
  const what = 'NSFW scan of a JPEG of 12 MP, one at a time'
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)]
  return [
    {
      what: `${what}, p50 of each, middle of ${ratios.length} pictures`,
      ours: `${least.toFixed(2)} to ${most.toFixed(2)} times`,
      against: 'the same picture at 1 MP',
      ratio: toMedian(ratios),
      wanted: 'at most 2.5',
    },
    {
      what: `${what}, p50 of all`,
      ours: `${twelveMs.toFixed(1)} ms`,
      against: `1 MP: ${oneMs.toFixed(1)} ms`,
      ratio: twelveMs / oneMs,
      wanted: '',
    },
  ]
}

const newTimes = (files: string[]) => ({ files, all: [] as number[], each: files.map((): number[] => []) })
