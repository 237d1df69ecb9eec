import { type Command, InvalidArgumentError } from 'commander'
import type { Evaluation, ModelEvaluation } from '../compose/evaluate-models.ts'
import type { ListedModel, makeModels } from '../compose/models.ts'
import type { Stores } from '../compose/stores.ts'
import { loadConfig } from '../config/load-config.ts'
import { makeLogger } from '../runtime/logger.ts'
import { addCommand, makeCommandAudit, newCommand, newInterruptSignal, print, toTable, withStores } from './terminal.ts'

type Models = ReturnType<typeof makeModels>
type Audited = Parameters<Models['remove']>[1]

export function makeModelsCommand(): Command {
  const models = newCommand('models', 'manage the image models of this node')

  addCommand(models, 'list', 'show the models of this node').action(async (_options: unknown, command: Command) => {
    const listed = await (await open()).list()
    const rows = listed.map(({ name, use, isOwn, manifest, fault }) => [
      name,
      use ?? null,
      manifest?.version ?? null,
      manifest?.form.threshold ?? null,
      manifest?.licence ?? (isOwn ? null : 'MIT'),
      fault ?? '',
    ])
    print(command, listed.map(toJson), toTable(['model', 'opinion', 'version', 'threshold', 'licence', ''], rows))
  })

  addCommand(models, 'add', 'add an image model of your own to this node; replaces one of the same name')
    .argument('<directory>', 'directory with manifest.json and the ONNX file that it names')
    .action(async (directory: string, _options: unknown, command: Command) => {
      const { name, version, sha256 } = await change('models.add', ({ add }, audited) => add(directory, audited))
      const advice = `Set ASSAY_NSFW_FIRST_MODEL or ASSAY_NSFW_SECOND_MODEL to ${name} to use it.`
      const notice = 'A running service that uses a model of this name opens the new one within seconds.'
      print(command, { name, version, sha256 }, `${name} ${version} works and is added. ${advice}\n${notice}`)
    })

  addCommand(models, 'remove', 'remove an image model that was added')
    .argument('<name>', 'name of the model, as models list prints it')
    .action(async (name: string, _options: unknown, command: Command) => {
      await change('models.remove', ({ remove }, audited) => remove(name, audited))
      print(command, { removed: name }, `${name} is removed from this node.`)
    })

  addCommand(models, 'evaluate', 'score your own pictures with each model, and compare the models')
    .argument('<pictures>', 'directory of JPEG, PNG, GIF and WebP pictures')
    .option('--labels <file>', 'lines such as beach.jpg,clean; without it, all pictures are taken to be clean')
    .option('--model <name...>', 'models to compare; by default all that models list prints')
    .option('--rate <share>', 'wanted share of clean pictures that may be threats', readRate, 0.005)
    .action(async (pictures: string, options: EvaluateOptions, command: Command) => {
      const signal = newInterruptSignal()
      const { config, log } = load()
      const { evaluateModels } = await import('../compose/evaluate-models.ts')
      const names = options.model ?? (await (await open()).list()).map(({ name }) => name)
      const { labels, rate } = options
      const onProgress = makeProgress()
      const found = await evaluateModels(config, { pictures, labels, models: names, rate, log, signal, onProgress })
      print(command, toEvaluationJson(found), toEvaluationText(found))
    })
  return models
}

type EvaluateOptions = { labels?: string; model?: string[]; rate: number }

function readRate(text: string): number {
  const rate = Number(text)
  if (!/^[\d.]+$/.test(text) || !(rate >= 0 && rate <= 0.5))
    throw new InvalidArgumentError('Enter a share from 0 to 0.5, such as 0.005.')
  return rate
}

function load() {
  const { config } = loadConfig(process.env)
  return { config, log: makeLogger({ level: 'fatal', region: config.region, format: config.logFormat }) }
}

/** Imported here, so that other commands start without loading the engines. */
async function open(signal = new AbortController().signal): Promise<Models> {
  const { makeModels } = await import('../compose/models.ts')
  const { config, log } = load()
  return makeModels(config, { log, signal })
}

/** `work` writes its entry to the audit log in the transaction in which it changes the files. */
const change = <T>(action: string, work: (models: Models, audited: Audited) => Promise<T>): Promise<T> =>
  withStores(async (stores: Stores) => {
    const note = (name: string) => makeCommandAudit(stores)(action, name)
    return work(await open(newInterruptSignal()), { atomically: stores.auth.audit.atomically, note })
  })

const progressMs = 2000

/** Tells on standard error how many pictures are done, every two seconds and at the end of each model. */
function makeProgress() {
  let last = performance.now()
  return (model: string, done: number, all: number) => {
    const now = performance.now()
    if (done < all && now - last < progressMs) return
    last = now
    process.stderr.write(`${model}: ${done} of ${all} pictures\n`)
  }
}

const toJson = ({ name, use, isOwn, manifest, fault }: ListedModel) => ({
  name,
  opinion: use ?? null,
  is_own: isOwn,
  version: manifest?.version ?? null,
  licence: manifest?.licence ?? (isOwn ? null : 'MIT'),
  source: manifest?.source ?? null,
  sha256: manifest?.sha256 ?? null,
  size: manifest?.form.shape.side ?? null,
  threshold: manifest?.form.threshold ?? null,
  fault: fault ?? null,
})

const toEvaluationJson = ({ pictures, rate, models, disagreements }: Evaluation) => ({
  pictures,
  rate,
  models: models.map((each) => ({
    model: each.model,
    threshold: each.threshold,
    scanned: each.scanned,
    unscanned: each.unscanned,
    distribution: each.distribution,
    false_positives: each.falsePositives,
    false_positive_rate: each.falsePositiveRate ?? null,
    missed: each.missed,
    threshold_for_rate: each.wantedThreshold ?? null,
  })),
  disagreements,
})

/** Text shows this many pictures of each list; JSON has all. */
const maxListed = 50

function toEvaluationText({ pictures, rate, models, disagreements }: Evaluation): string {
  const columns = ['model', ...Array.from({ length: 10 }, (_, i) => `${i / 10}`), 'not scanned']
  const spread = models.map(({ model, distribution, unscanned }) => [model, ...distribution, unscanned.length])
  const rows = models.map((each) => [
    each.model,
    each.threshold,
    each.falsePositives.length,
    each.falsePositiveRate === undefined ? null : toPercent(each.falsePositiveRate),
    each.missed.length,
    each.wantedThreshold ?? null,
  ])
  const head = ['model', 'threshold', 'false positives', 'share', 'missed', `threshold for ${toPercent(rate)}`]
  return [
    `${pictures} pictures by their score, from the value at the head of a column on:`,
    toTable(columns, spread),
    '',
    toTable(head, rows),
    ...models.flatMap((each) => toPictureLists(each)),
    '',
    `Disagreements: ${disagreements.length}`,
    ...toShort(disagreements, ({ picture, scores }) => {
      const each = Object.entries(scores).map(([model, score]) => `${model} ${score.toFixed(4)}`)
      return `  ${picture}  ${each.join(', ')}`
    }),
  ].join('\n')
}

function toPictureLists({ model, falsePositives, missed }: ModelEvaluation): string[] {
  const toLine = ({ picture, score }: { picture: string; score: number }) => `  ${score.toFixed(4)}  ${picture}`
  return [
    ...(falsePositives.length === 0 ? [] : ['', `False positives of ${model}:`, ...toShort(falsePositives, toLine)]),
    ...(missed.length === 0 ? [] : ['', `Missed by ${model}:`, ...toShort(missed, toLine)]),
  ]
}

function toShort<T>(items: T[], toLine: (item: T) => string): string[] {
  const rest = items.length - maxListed
  return [...items.slice(0, maxListed).map(toLine), ...(rest > 0 ? [`  and ${rest} more; --json lists all`] : [])]
}

const toPercent = (share: number) => `${Number((share * 100).toFixed(3))} %`
