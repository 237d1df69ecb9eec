import { dirname } from 'node:path'
import type { Content } from '../../domain/content/content.ts'
import { EngineDown, type EngineState, type ImageEngine, type ImageReport } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { ProcessDied } from '../worker/worker-process.ts'
import { chooseConfinement } from './confinement.ts'
import { makeCores } from './cores.ts'
import { toImageEngineState } from './engine-state.ts'
import { startImageProcess } from './image-process.ts'
import type { ModelName } from './models/manifest.ts'
import type { Model } from './models/open-models.ts'
import { openProcessPool } from './process-pool.ts'
import type { Opening, Profile } from './wire.ts'

export type ImageEngineDeps = {
  /** MobileNetV2Mid, and InceptionV3 for every profile but `fast`. */
  models: Model[]
  profile: Profile
  /** `balanced` asks the second model from this on; 1 is sure to be unsafe. */
  suspicion?: number
  /** Each works on one picture at a time, with one core. */
  processes: number
  maxWaiting?: number
  log: Logger
  waitMs?: number
  /** What a picture may take once its bytes are sent. */
  timeoutMs?: number
  maxMemoryMb?: number
  idleMs?: number
  startMs?: number
}

export type RunningImageEngine = ImageEngine & {
  countWaiting(): number
  /** Why it cannot scan, if it cannot. */
  findFault(): string | undefined
  close(): Promise<void>
}

/** About 3 % of neutral pictures are above it. */
export const defaultSuspicion = 0.1

const defaults = {
  suspicion: defaultSuspicion,
  maxWaiting: 200,
  waitMs: 60_000,
  timeoutMs: 10_000,
  maxMemoryMb: 640,
  idleMs: 60_000,
  startMs: 30_000,
}
const sendMs = 30_000
const attempts = 2
/** Address space that counts as data and is never touched: stacks of threads, room that V8 keeps for itself. */
const untouchedMb = 1024

/** Looks at pictures in processes of their own. It opens also where none can be started, keeps trying, and tells why. */
export async function openImageEngine(deps: ImageEngineDeps): Promise<RunningImageEngine> {
  const settings = { ...defaults, ...deps }
  const { models, profile, suspicion, maxMemoryMb, log } = settings
  const confinement = chooseConfinement({
    modelDirs: [...new Set(models.map(({ path }) => dirname(path)))],
    maxDataMb: maxMemoryMb + untouchedMb,
  })
  if (confinement.hasNetwork) log.warn('the kernel does not let image processes be cut off from the network')
  const processDeps = {
    confinement,
    cores: makeCores(settings),
    opening: { models: toPaths(models, profile), profile, suspicion },
    startMs: settings.startMs,
    sendMs,
    workMs: settings.timeoutMs,
    maxMemoryMb,
  }
  let state: EngineState | undefined
  const pool = openProcessPool({
    ...settings,
    async start(signal) {
      const process = await startImageProcess(processDeps, signal)
      state ??= toImageEngineState(settings, process.versions)
      return process
    },
  })
  await pool.completed

  return {
    name: 'NSFW',
    kind: 'image',
    findState: () => (pool.isUp() ? state : undefined),
    countWaiting: pool.countWaiting,
    findFault() {
      const fault = pool.findFault()
      return fault === undefined ? undefined : `The image engine cannot be started: ${toMessage(fault)}`
    },
    /** A process that died is not the picture's fault, once. */
    async classify(content: Content, signal: AbortSignal): Promise<ImageReport> {
      let death: unknown
      for (let attempt = 0; attempt < attempts; attempt++) {
        try {
          return await pool.use((process) => process.classify(content), signal)
        } catch (error) {
          if (!(error instanceof ProcessDied)) throw error
          death = error
          log.warn({ err: error }, 'an image process died at work')
        }
      }
      throw new EngineDown(`The image process died ${attempts} times on the same picture`, { cause: death })
    },
    close: pool.close,
  }
}

function toPaths(models: Model[], profile: Profile): Opening['models'] {
  const find = (wanted: ModelName) => models.find(({ name }) => name === wanted)?.path
  const [small, large] = [find('mobilenet-v2-mid'), find('inception-v3')]
  if (small === undefined || (large === undefined && profile !== 'fast'))
    throw new Error(`There is no model for the profile ${profile}`)
  return { small, large }
}

const toMessage = (fault: unknown) => (fault instanceof Error ? fault.message : String(fault)).slice(0, 300)
