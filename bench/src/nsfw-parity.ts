import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pino } from 'pino'
import { imageThresholds } from '../../packages/server/src/domain/scans/image-scan.ts'
import { defaultSuspicion } from '../../packages/server/src/engines/nsfw/image-engine.ts'
import { toInputSize } from '../../packages/server/src/engines/nsfw/models/convert.ts'
import { builtDir, modelNames, type Precision } from '../../packages/server/src/engines/nsfw/models/manifest.ts'
import { openModels } from '../../packages/server/src/engines/nsfw/models/open-models.ts'
import { collectNeutralPictures } from '../../scripts/neutral-pictures.ts'
import { type ClassScores, classifyWithNsfwjs, scoreWithModels, scoreWithNsfwjs } from './nsfw-scores.ts'
import { scanWhole } from './nsfw-whole.ts'
import type { Row } from './results.ts'

/** Number of pictures given to nsfwjs, which takes a second for each with InceptionV3. */
const peerPictures = 200
const thresholds = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9]
/** Score from which Mid consults InceptionV3 in the balanced profile. */
const suspicion = defaultSuspicion

/** Compares the scores of the converted models with those of nsfwjs, and counts harmless pictures that they flag. */
export async function benchNsfwParity(): Promise<Row[]> {
  return comparePictures(await collectNeutralPictures())
}

async function comparePictures(pictures: string[]): Promise<Row[]> {
  const step = Math.max(1, pictures.length / peerPictures)
  const chosen = pictures.map((_, i) => Math.floor(i * step)).filter((at) => at < pictures.length)
  const log = pino({ level: 'warn' }, pino.destination(2))
  const rows: Row[] = []
  const [int8Scores, fp32Scores]: [ClassScores[], ClassScores[]] = [[], []]
  for (const name of modelNames) {
    const open = (precision: Precision) => openModels({ dirs: [builtDir], names: [name], precision, log })
    const models = [...(await open('int8')), ...(await open('fp32'))]
    const [int8 = [], fp32 = []] = await scoreWithModels(name, models, pictures)
    int8Scores.push(int8)
    fp32Scores.push(fp32)
    const paths = chosen.map((at) => pictures[at] as string)
    const theirs = await scoreWithNsfwjs(name, toInputSize(name), paths)
    const ours = chosen.map((at) => fp32[at] as Float32Array)
    rows.push(...compareWithNsfwjs(name, ours, theirs))
  }
  const [int8, fp32] = [toOpinions(int8Scores), toOpinions(fp32Scores)]
  return [
    ...rows,
    ...(await compareWhole(chosen.map((at) => pictures[at] as string))),
    ...compareInt8(int8, fp32),
    ...countFalsePositives('int8', int8),
    ...countFalsePositives('fp32', fp32),
    listFalsePositives(int8, pictures),
  ]
}

/** Scores of each picture by each implementation: clean, pornography, sexy. */
type Opinions = { Mid: number[][]; InceptionV3: number[][]; both: number[][]; balanced: number[][]; asked: number }

function toOpinions(found: ClassScores[]): Opinions {
  const [mid = [], inception = []] = found.map((scores) => scores.map(toLabels))
  const both = mid.map((labels, i) => labels.map((score, label) => (score + (inception[i]?.[label] as number)) / 2))
  const isAsked = mid.map((labels) => toUnsafe(labels) >= suspicion)
  const balanced = mid.map((labels, i) => (isAsked[i] ? (both[i] as number[]) : labels))
  return { Mid: mid, InceptionV3: inception, both, balanced, asked: toShare(isAsked) }
}

function toLabels(scores: Float32Array): number[] {
  const [drawing = 0, hentai = 0, neutral = 0, porn = 0, sexy = 0] = scores
  return [neutral + drawing, porn + hentai, sexy]
}

const toUnsafe = ([clean = 0]: number[]) => 1 - clean

const toShare = (hits: boolean[]) => hits.filter(Boolean).length / hits.length

const toPercent = (share: number) => `${(100 * share).toFixed(2)} %`

function compareWithNsfwjs(name: string, ours: ClassScores, theirs: ClassScores): Row[] {
  const greatest = Math.max(...toDifferences(ours.map(toArray), theirs.map(toArray)))
  const changed = ours.filter((scores, i) => toTop(scores) !== toTop(theirs[i] as Float32Array)).length
  const what = `${name} fp32 on ${ours.length} pictures`
  const against = 'nsfwjs on the same pixels'
  return [
    newRow(`${what}, greatest difference of a score`, greatest.toExponential(1), against, 'at most 1e-4'),
    newRow(`${what}, other top class`, String(changed), against, '0'),
  ]
}

/** Compares scores from the file on, each with its own sampling, which changes scores. */
async function compareWhole(pictures: string[]): Promise<Row[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-bench-'))
  try {
    const ours = await scanWhole(pictures, dataDir)
    const theirs = (await classifyWithNsfwjs('mobilenet-v2-mid', 224, pictures)).map(toLabels)
    const scanned = ours.map((_, i) => i).filter((i) => !Number.isNaN(ours[i]?.[0]))
    const [mine, others] = [ours, theirs].map((all) => scanned.map((i) => all[i] as number[])) as [
      number[][],
      number[][],
    ]
    const sorted = toDifferences(mine, others).sort((a, b) => a - b)
    const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(4)
    const isThreat = (labels: number[] = []) => toUnsafe(labels) >= imageThresholds.default
    const changed = mine.filter((labels, i) => isThreat(labels) !== isThreat(others[i])).length
    const what = `from file to scores, Mid int8, ${scanned.length} pictures`
    const against = 'classify of nsfwjs'
    return [
      newRow(`${what}, differences of scores`, `p50 ${at(0.5)}, p95 ${at(0.95)}, most ${at(0.9999)}`, against, ''),
      newRow(`${what}, other verdict at ${imageThresholds.default}`, String(changed), against, ''),
    ]
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

const toArray = (scores: Float32Array) => [...scores]

const toTop = (scores: Float32Array) => scores.indexOf(Math.max(...scores))

function compareInt8(int8: Opinions, fp32: Opinions): Row[] {
  return (['Mid', 'InceptionV3', 'both', 'balanced'] as const).flatMap((way) => {
    const [ours, theirs] = [int8[way], fp32[way]]
    const sorted = toDifferences(ours, theirs).sort((a, b) => a - b)
    const p95 = sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN
    const isThreat = (labels: number[] = []) => toUnsafe(labels) >= imageThresholds.default
    const changed = ours.filter((labels, i) => isThreat(labels) !== isThreat(theirs[i])).length
    const what = `${way} int8 on ${ours.length} pictures`
    return [
      newRow(`${what}, p95 of the differences of scores`, p95.toFixed(4), 'fp32', 'at most 0.02'),
      newRow(`${what}, greatest difference`, (sorted.at(-1) ?? Number.NaN).toFixed(4), 'fp32', ''),
      newRow(`${what}, other verdict at ${imageThresholds.default}`, String(changed), 'fp32', '0'),
    ]
  })
}

function toDifferences(ours: number[][], theirs: number[][]): number[] {
  return ours.flatMap((scores, i) => scores.map((score, at) => Math.abs(score - (theirs[i]?.[at] as number))))
}

function countFalsePositives(precision: Precision, opinions: Opinions): Row[] {
  const { Mid, InceptionV3, both, balanced, asked } = opinions
  const count = (way: number[][], threshold: number) =>
    toPercent(toShare(way.map((labels) => toUnsafe(labels) >= threshold)))
  const what = `${Mid.length} neutral pictures, ${precision}, `
  return [
    newRow(`${what}asks InceptionV3 from ${suspicion} on`, toPercent(asked), '', 'about 3 %'),
    ...thresholds.map((threshold) =>
      newRow(
        `${what}unsafe from ${threshold} on`,
        `balanced ${count(balanced, threshold)}`,
        `Mid ${count(Mid, threshold)}, InceptionV3 ${count(InceptionV3, threshold)}, both ${count(both, threshold)}`,
        threshold === imageThresholds.default ? 'at most 0.5 %' : '',
      ),
    ),
  ]
}

function listFalsePositives({ balanced }: Opinions, pictures: string[]): Row {
  const unsafe = pictures.filter((_, i) => toUnsafe(balanced[i] ?? []) >= imageThresholds.default)
  const what = `neutral pictures that are unsafe from ${imageThresholds.default} on, int8, balanced`
  return newRow(what, String(unsafe.length), unsafe.map((path) => basename(path)).join(', '), 'listed')
}

const newRow = (what: string, ours: string, against: string, wanted: string): Row => {
  return { what, ours, against, ratio: undefined, wanted }
}
