import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config/load-config.ts'
import type { AuditLog } from '../domain/ports/operations.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { ModelRefused, modelNames, type OwnManifest } from '../engines/nsfw/models/manifest.ts'
import type { Model } from '../engines/nsfw/models/model.ts'
import { draftOwnModel, listOwnModels } from '../engines/nsfw/models/own-models.ts'
import type { Logger } from '../runtime/logger.ts'
import { listChosenModels, openWithModels, toOwnDir } from './images.ts'

type Deps = { log: Logger; signal: AbortSignal }
type Audited = { atomically: AuditLog['atomically']; note(name: string): Promise<void> }

/** A model of this node; `fault` is a sentence about a model that cannot be used. */
export type ListedModel = {
  name: string
  /** The opinion for which the settings choose it. */
  use: 'first' | 'second' | undefined
  isOwn: boolean
  manifest: OwnManifest | undefined
  fault: string | undefined
}

/** Lists, adds and removes the image models of this node. */
export function makeModels(config: Config, { log, signal }: Deps) {
  const dir = toOwnDir(config)
  const chosen = listChosenModels(config, config.nsfwProfile)
  const findUse = (name: string) => (['first', 'second'] as const)[chosen.indexOf(name)]

  return {
    async list(): Promise<ListedModel[]> {
      const shipped = modelNames.map((name) => ({
        name,
        use: findUse(name),
        isOwn: false,
        manifest: undefined,
        fault: undefined,
      }))
      const own = (await listOwnModels(dir)).map(({ name, manifest }) => ({
        name,
        use: findUse(name),
        isOwn: true,
        manifest: typeof manifest === 'string' ? undefined : manifest,
        fault: typeof manifest === 'string' ? manifest : undefined,
      }))
      return [...shipped, ...own]
    },

    /** Copies a model to this node, tries it in a confined process, and replaces one of the same name. */
    async add(source: string, { atomically, note }: Audited): Promise<OwnManifest> {
      const draft = await draftOwnModel(source, dir, signal).catch(throwMistake)
      try {
        await requireWorking(draft.model)
        // The entry comes first: a file cannot be part of the transaction, and no change may be without an entry.
        await atomically(async () => {
          await note(draft.manifest.name)
          throwIfInterrupted()
          await draft.place()
        })
        return draft.manifest
      } finally {
        await draft.discard()
      }
    },

    async remove(name: string, { atomically, note }: Audited) {
      const path = join(dir, name)
      // A name with a slash or a dot in front could lead out of the directory, or to a draft.
      const found = /^[a-z0-9][^/]*$/.test(name) ? await stat(path).catch(() => undefined) : undefined
      if (found?.isDirectory() !== true) throw new OperatorMistake(`There is no model ${name} that was added.`)
      const use = findUse(name)
      if (use !== undefined)
        throw new OperatorMistake(
          `${name} is in use: ASSAY_NSFW_${use.toUpperCase()}_MODEL names it. Change that first.`,
        )
      await atomically(async () => {
        await note(name)
        await rm(path, { recursive: true })
      })
    },
  }

  function throwIfInterrupted() {
    if (signal.aborted) throw new OperatorMistake(interrupted)
  }

  async function requireWorking(model: Model) {
    const engine = await openWithModels({ ...config, nsfwProcesses: 1 }, { models: [model], profile: 'fast', log })
    const fault = engine.findFault()
    await engine.close()
    throwIfInterrupted()
    if (fault !== undefined) throw new OperatorMistake(`The model ${model.name} is refused. ${fault}`)
  }
}

const interrupted = 'Interrupted: no model was added.'

/** Turns what an operator can correct into a sentence without a stack. */
function throwMistake(error: Error): never {
  if (error.name === 'AbortError') throw new OperatorMistake(interrupted)
  if (error instanceof ModelRefused) throw new OperatorMistake(`The model is refused: ${error.message}`)
  throw error
}
