import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { newMemoryContent } from '../blobs/memory-content.ts'
import type { Config } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { makeSemaphore } from '../domain/semaphore.ts'
import { ModelRefused } from '../engines/nsfw/models/manifest.ts'
import { commonThreshold, type Label, labels, type Model } from '../engines/nsfw/models/model.ts'
import type { Logger } from '../runtime/logger.ts'
import { findChosenModels, openWithModels } from './images.ts'

type Options = {
  /** A directory; pictures are looked for at any depth. */
  pictures: string
  labels: string | undefined
  /** Names of models. */
  models: string[]
  rate: number
  log: Logger
  signal: AbortSignal
  onProgress(model: string, done: number, all: number): void
}

/** Scores pictures with each model on its own, as the profile `fast` would, and compares the models. */
export async function evaluateModels(config: Config, options: Options): Promise<Evaluation> {
  const { signal, log } = options
  const pictures = await listPictures(options)
  const models = await findChosenModels(config, options.models, { log }).catch((error: Error) => {
    throw error instanceof ModelRefused ? new OperatorMistake(error.message) : error
  })
  const scored: Scored[] = pictures.map(({ name, label }) => ({ name, label, scores: {} }))
  for (const model of models) {
    await scoreWith(model, config, {
      ...options,
      pictures: pictures.map(({ path }) => path),
      onScore(i, score) {
        const picture = scored[i]
        if (picture !== undefined) picture.scores[model.name] = score
      },
    }).catch((error: unknown) => {
      throw signal.aborted ? new OperatorMistake('Interrupted before all pictures were scored.') : error
    })
  }
  const thresholds = Object.fromEntries(models.map(({ name, form }) => [name, form.threshold]))
  return evaluate(scored, thresholds, options.rate)
}

const extensions = /\.(jpe?g|png|gif|webp)$/i
/** The largest picture of the interface. */
const maxPictureBytes = 16 * 1024 * 1024

type Picture = { path: string; name: string; label: Label }

async function listPictures({ pictures: dir, labels: labelFile }: Options): Promise<Picture[]> {
  const found = await stat(dir).catch(() => undefined)
  if (found?.isDirectory() !== true) throw new OperatorMistake(`${dir} is not a directory.`)
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile() && extensions.test(entry.name))
    .map((entry) => relative(resolve(dir), resolve(entry.parentPath, entry.name)))
    .sort()
  const known = labelFile === undefined ? undefined : await readLabels(labelFile, new Set(names))
  const pictures = names.flatMap((name) => {
    const label = known === undefined ? 'clean' : known.get(name)
    return label === undefined ? [] : [{ path: join(dir, name), name, label }]
  })
  if (pictures.length === 0) throw new OperatorMistake(`There are no pictures to evaluate in ${dir}.`)
  return pictures
}

/** Reads lines such as `holiday/beach.jpg,clean`: a path below the pictures, a comma or tab, and a label. */
async function readLabels(file: string, names: Set<string>): Promise<Map<string, Label>> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new OperatorMistake(`The labels cannot be read: ${error.message}.`)
  })
  const found = new Map<string, Label>()
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue
    const [, name = '', word = ''] = /^(.*)[,\t]\s*(\w+)\s*$/.exec(line) ?? []
    const label = labels.find((each) => each === word)
    if (label === undefined)
      throw new OperatorMistake(`Line ${i + 1} of ${file} is not a path, a comma, and one of ${labels.join(', ')}.`)
    if (!names.has(name))
      throw new OperatorMistake(`Line ${i + 1} of ${file} names ${name}, which is no picture there.`)
    found.set(name, label)
  }
  return found
}

type ScoreOptions = Pick<Options, 'log' | 'signal' | 'onProgress'> & {
  pictures: string[]
  /** The score is undefined for a picture that cannot be scanned. */
  onScore(index: number, score: number | undefined): void
}

async function scoreWith(model: Model, config: Config, { pictures, log, signal, onProgress, onScore }: ScoreOptions) {
  // Scores of the model as they are: a threshold is looked for on its own scale.
  const unscaled = { ...model, form: { ...model.form, threshold: commonThreshold } }
  const engine = await openWithModels(config, { models: [unscaled], profile: 'fast', log })
  try {
    const fault = engine.findFault()
    if (fault !== undefined) throw new OperatorMistake(`The model ${model.name} is refused. ${fault}`)
    let done = 0
    const turns = makeSemaphore({ count: maxAtOnce, maxWaitMs: Infinity })
    const works = pictures.map((path, i) =>
      turns.use(
        async () => {
          signal.throwIfAborted()
          onScore(i, await scorePicture(engine, path, signal))
          onProgress(model.name, ++done, pictures.length)
        },
        { signal },
      ),
    )
    await Promise.all(works)
  } finally {
    // Processes end here, also after Ctrl-C; nothing was written to a disk.
    await engine.close()
  }
}

/** Pictures in memory at once: enough to keep every process busy. */
const maxAtOnce = 32

type Engine = Awaited<ReturnType<typeof openWithModels>>

async function scorePicture(engine: Engine, path: string, signal: AbortSignal): Promise<number | undefined> {
  if ((await stat(path)).size > maxPictureBytes) return undefined
  const content = await newMemoryContent(await readFile(path), () => {})
  const report = await engine.classify(content, { signal })
  // A picture of which a part was not scanned has no score: the highest may be in that part.
  if (!('frames' in report) || report.doubt !== undefined) return undefined
  return Math.max(...report.frames.map(({ pornography, sexy }) => pornography + sexy))
}

/** The sum of sexy and pornography by model; undefined for a picture that could not be scanned. */
export type Scored = { name: string; label: Label; scores: Record<string, number | undefined> }

export type ModelEvaluation = {
  model: string
  threshold: number
  scanned: number
  unscanned: string[]
  /** Numbers of pictures with a score from 0 to 0.1, from 0.1 to 0.2, and so on. */
  distribution: number[]
  /** Pictures that are clean by their label and threats by their score, the highest first. */
  falsePositives: { picture: string; score: number }[]
  falsePositiveRate: number | undefined
  /** Pictures that are not clean by their label and clean by their score, the lowest first. */
  missed: { picture: string; score: number }[]
  /** The lowest threshold at which at most the wanted share of clean pictures are threats; undefined when none is. */
  wantedThreshold: number | undefined
}

export type Evaluation = {
  pictures: number
  rate: number
  models: ModelEvaluation[]
  /** Pictures that are a threat to some models and clean to others. */
  disagreements: { picture: string; label: Label; scores: Record<string, number> }[]
}

/** Compares the models; `thresholds` names them. */
export function evaluate(scored: Scored[], thresholds: Record<string, number>, rate: number): Evaluation {
  const names = Object.keys(thresholds)
  const models = names.map((model) => evaluateModel(model, scored, thresholds[model] ?? 0, rate))
  const disagreements = scored.flatMap(({ name, label, scores }) => {
    const known = names.flatMap((model) => (scores[model] === undefined ? [] : [[model, scores[model]] as const]))
    const verdicts = new Set(known.map(([model, score]) => score >= (thresholds[model] ?? 0)))
    return verdicts.size < 2 ? [] : [{ picture: name, label, scores: Object.fromEntries(known) }]
  })
  return { pictures: scored.length, rate, models, disagreements }
}

const buckets = 10

function evaluateModel(model: string, pictures: Scored[], threshold: number, rate: number): ModelEvaluation {
  const scored = pictures.flatMap(({ name: picture, label, scores }) => {
    const score = scores[model]
    return score === undefined ? [] : [{ picture, label, score }]
  })
  const distribution = Array.from({ length: buckets }, () => 0)
  for (const { score } of scored) {
    const at = Math.min(buckets - 1, Math.floor(score * buckets))
    distribution[at] = (distribution[at] ?? 0) + 1
  }
  const pick = ({ picture, score }: { picture: string; score: number }) => ({ picture, score })
  const clean = scored.filter(({ label }) => label === 'clean').sort((a, b) => b.score - a.score)
  const unsafe = scored.filter(({ label }) => label !== 'clean').sort((a, b) => a.score - b.score)
  const falsePositives = clean.filter(({ score }) => score >= threshold).map(pick)
  return {
    model,
    threshold,
    scanned: scored.length,
    unscanned: pictures.filter(({ scores }) => scores[model] === undefined).map(({ name }) => name),
    distribution,
    falsePositives,
    falsePositiveRate: clean.length === 0 ? undefined : falsePositives.length / clean.length,
    missed: unsafe.filter(({ score }) => score < threshold).map(pick),
    wantedThreshold: findThreshold(
      clean.map(({ score }) => score),
      rate,
    ),
  }
}

/** Manifests take thresholds from 0.01 to 0.99. */
const thresholdRange = { least: 0.01, most: 0.99 }
const steps = 10_000

/** `scores` are those of clean pictures, the highest first. */
function findThreshold(scores: number[], rate: number): number | undefined {
  if (scores.length === 0) return undefined
  // The highest score that must stay below the threshold.
  const highest = scores[Math.floor(rate * scores.length)] ?? 0
  const threshold = Math.max(thresholdRange.least, (Math.floor(highest * steps) + 1) / steps)
  return threshold > thresholdRange.most ? undefined : threshold
}
