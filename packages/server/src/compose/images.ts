import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import type { Config } from '../config/load-config.ts'
import { imageThresholds, makeImageScan } from '../domain/scans/image-scan.ts'
import { makeVersionedCache } from '../domain/scans/verdict.ts'
import type { OnEscape } from '../engines/jail/escape.ts'
import { openImageEngine } from '../engines/nsfw/image-engine.ts'
import { builtDir } from '../engines/nsfw/models/manifest.ts'
import { openModels } from '../engines/nsfw/models/open-models.ts'
import type { Logger } from '../runtime/logger.ts'

/** Images that may wait for a process. With more, callers would time out before their image is scanned. */
const maxWaiting = 200

type Deps = { log: Logger; onEscape?: OnEscape | undefined }

/** Opens the image engine. When it cannot start, the service still scans for malware, and `findFault` says why. */
export async function openImages(config: Config, { log, onEscape }: Deps) {
  const result = await openEngine(config, { log, onEscape })
  const engine = 'engine' in result ? result.engine : undefined
  return {
    images: makeImageScan({
      findEngine: () => engine,
      cache: makeVersionedCache({ entries: config.verdictCache }),
      threshold: imageThresholds[config.nsfwThreshold],
      knowsTestImages: config.nsfwTestImages === 'on',
    }),
    listEngines: () => (engine === undefined ? [] : [engine]),
    countWaiting: () => engine?.countWaiting() ?? 0,
    findFault: () => ('fault' in result ? result.fault : result.engine?.findFault()),
    close: async () => engine?.close(),
  }
}

async function openEngine(config: Config, { log, onEscape }: Deps) {
  const { nsfwProfile: profile, nsfwPrecision: precision } = config
  if (profile === 'off') return { engine: undefined }
  try {
    const models = await openModels({
      dirs: config.modelDir === undefined ? [builtDir, join(resolve(config.dataDir), 'models')] : [config.modelDir],
      names: profile === 'fast' ? ['mobilenet-v2-mid'] : ['mobilenet-v2-mid', 'inception-v3'],
      precision,
      log,
      onEscape,
    })
    const processes = config.nsfwProcesses ?? availableParallelism()
    return { engine: await openImageEngine({ models, profile, processes, maxWaiting, log, onEscape }) }
  } catch (error) {
    log.error({ err: error }, 'cannot start the image engine')
    const { message } = error as Error
    return { fault: `NSFW image scans answer 500 and are not charged: ${message.replace(/\.?$/, '.')}` }
  }
}
