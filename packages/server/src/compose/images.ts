import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../config/load-config.ts'
import { imageThresholds, makeImageScan } from '../domain/scans/image-scan.ts'
import { makeVersionedCache } from '../domain/scans/scan.ts'
import { engineOptions } from '../engines/child-process/engine-options.ts'
import type { OnEscape } from '../engines/jail/policy.ts'
import { openImageEngine, type RunningImageEngine } from '../engines/nsfw/image-engine.ts'
import { builtDir, ModelRefused, modelNames } from '../engines/nsfw/models/manifest.ts'
import type { Model } from '../engines/nsfw/models/model.ts'
import { openModels } from '../engines/nsfw/models/open-models.ts'
import { makeHashMemory, readOwnModel } from '../engines/nsfw/models/own-models.ts'
import type { Profile } from '../engines/nsfw/requests.ts'
import { makeOneAtATime } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import { watchDirectories } from '../runtime/watch-files.ts'
import { countImageProcesses } from './content-memory.ts'

/** Images that may wait for a process. With more, callers would time out before their image is scanned. */
const maxWaiting = 200

/** Network file systems send no events, so changes of the operator's models are also looked for this often. */
const pollMs = 10_000

type Deps = { log: Logger; onEscape?: OnEscape | undefined }

/** Opens the image engine. When it cannot start, the service still scans for malware, and `findFault` says why. */
export async function openImages(config: Config, deps: Deps) {
  const { findEngine, findFault, close } = await openEngine(config, deps)
  return {
    images: makeImageScan({
      findEngine,
      cache: makeVersionedCache({ entries: config.verdictCache }),
      threshold: imageThresholds[config.nsfwThreshold],
      knowsTestImages: config.nsfwTestImages === 'on',
    }),
    listEngines: () => [findEngine() ?? []].flat(),
    countWaiting: () => findEngine()?.countWaiting() ?? 0,
    findFault,
    close,
  }
}

/** Opens the engine of the profile, and replaces it when a model of the operator changes. */
async function openEngine(config: Config, { log, onEscape }: Deps) {
  const { nsfwProfile: profile } = config
  if (profile === 'off') return { findEngine: () => undefined, findFault: () => undefined, close: async () => {} }
  const names = listChosenModels(config, profile)
  const hash = makeHashMemory()
  let current: { engine: RunningImageEngine; mark: string } | undefined
  let fault: string | undefined
  let refusedMark: string | undefined
  let isClosed = false

  const findModels = () => findChosenModels(config, names, { hash, log, onEscape })
  const open = (models: Model[]) => openWithModels(config, { models, profile, log, onEscape })

  /** Opens the changed models in new processes beside the running ones, which stay when the new ones cannot work. */
  const reload = makeOneAtATime(async () => {
    if (isClosed) return
    try {
      const models = await findModels()
      const mark = JSON.stringify(models)
      if (mark === refusedMark) return
      if (mark !== current?.mark) {
        refusedMark = mark
        const engine = await open(models)
        await throwIfDown(engine)
        // Processes that are scanning finish first.
        void current?.engine.retire()
        current = { engine, mark }
        log.info({ models: models.map(({ title }) => title) }, 'new image models are in use')
      }
      refusedMark = undefined
      fault = undefined
    } catch (error) {
      const { message } = error as Error
      const stays = current === undefined ? '' : ' The previous model stays in use.'
      const says = `An image model is refused: ${toSentence(message)}${stays}`
      if (fault !== says) log.error({ err: error }, 'an image model is refused')
      fault = says
    }
  })

  try {
    const models = await findModels()
    current = { engine: await open(models), mark: JSON.stringify(models) }
  } catch (error) {
    log.error({ err: error }, 'cannot start the image engine')
    fault = `NSFW image scans answer 500 and are not charged: ${toSentence((error as Error).message)}`
  }
  const own = names.filter(isOwnName)
  const dirs = [toOwnDir(config), ...own.map((name) => join(toOwnDir(config), name))]
  const watcher = own.length === 0 ? undefined : watchDirectories({ dirs, pollMs, onChange: () => void reload() })
  return {
    findEngine: () => current?.engine,
    findFault: () => fault ?? current?.engine.findFault(),
    async close() {
      isClosed = true
      watcher?.close()
      // Waits for a run that has begun.
      await reload()
      await current?.engine.close()
    },
  }
}

async function throwIfDown(engine: RunningImageEngine) {
  const fault = engine.findFault()
  if (fault === undefined) return
  await engine.close()
  throw new Error(fault)
}

const toSentence = (message: string) => message.replace(/\.?$/, '.')

/** The directory of the models that the operator added on this node. */
export const toOwnDir = ({ dataDir }: Pick<Config, 'dataDir'>) => join(resolve(dataDir), 'models')

const isOwnName = (name: string) => !modelNames.some((shipped) => shipped === name)

/** Lists the models that a profile uses, by name: the first opinion, and the second for every profile but `fast`. */
export const listChosenModels = (
  { nsfwFirstModel, nsfwSecondModel }: Pick<Config, 'nsfwFirstModel' | 'nsfwSecondModel'>,
  profile: Config['nsfwProfile'],
): string[] => (profile === 'off' ? [] : profile === 'fast' ? [nsfwFirstModel] : [nsfwFirstModel, nsfwSecondModel])

type FindDeps = Deps & { hash?: (path: string) => Promise<string> }

/** Finds models by name: those of Assay, and those that the operator added. Throws when one cannot be used. */
export async function findChosenModels(config: Config, names: string[], { hash, log, onEscape }: FindDeps) {
  const shipped = await openModels({
    dirs: config.modelDir === undefined ? [builtDir, toOwnDir(config)] : [config.modelDir],
    names: modelNames.filter((name) => names.includes(name)),
    precision: config.nsfwPrecision,
    log,
    onEscape,
  })
  const models: Model[] = []
  for (const name of names)
    models.push(shipped.find((model) => model.name === name) ?? (await findOwnModel(toOwnDir(config), name, hash)))
  return models
}

async function findOwnModel(dir: string, name: string, hash: FindDeps['hash']): Promise<Model> {
  const path = join(dir, name)
  if (!existsSync(path))
    throw new ModelRefused(`There is no model ${name} on this node. Add it with npm run assay -- models add.`)
  const model = await readOwnModel(path, hash)
  if (model.name !== name) throw new ModelRefused(`The manifest in ${path} is that of a model ${model.name}.`)
  return model
}

type EngineDeps = Deps & { models: Model[]; profile: Profile }

/** Opens an engine, with the limits of own models where one of its models is. */
export function openWithModels(config: Config, { models, profile, log, onEscape }: EngineDeps) {
  const processes = countImageProcesses(config)
  const own = { ...engineOptions.ownModels, maxMemoryMb: config.nsfwModelMemoryMb }
  const limits = models.some(({ isOwn }) => isOwn) ? own : {}
  return openImageEngine({ models, profile, processes, maxWaiting, log, onEscape, ...limits })
}
