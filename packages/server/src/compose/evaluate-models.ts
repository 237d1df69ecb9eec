import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { newMemoryContent } from '../blobs/memory-content.ts'
import type { Config } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { makeSemaphore } from '../domain/semaphore.ts'
import { commonThreshold, type Label, labels, type Model } from '../engines/nsfw/models/model.ts'
import { ModelRefused } from '../engines/nsfw/models/own-manifest.ts'
import type { Logger } from '../runtime/logger.ts'
import { type Evaluation, evaluate, type Scored } from './evaluation.ts'
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
const maxBytes = 16 * 1024 * 1024

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
  if ((await stat(path)).size > maxBytes) return undefined
  const content = await newMemoryContent(await readFile(path), () => {})
  const report = await engine.classify(content, { signal })
  // A picture of which a part was not scanned has no score: the highest may be in that part.
  if (!('frames' in report) || report.doubt !== undefined) return undefined
  return Math.max(...report.frames.map(({ pornography, sexy }) => pornography + sexy))
}
