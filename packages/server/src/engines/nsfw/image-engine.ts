import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Content } from '../../domain/content/content.ts'
import {
  EngineDown,
  type EngineState,
  type ImageEngine,
  type ImageReport,
  type Work,
} from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { engineOptions } from '../child-process/engine-options.ts'
import { openProcessPool } from '../child-process/process-pool.ts'
import { toBody } from '../child-process/send-body.ts'
import { type Child, LimitExceeded, ProcessDied, startChild } from '../child-process/start-child.ts'
import type { OnEscape } from '../jail/policy.ts'
import { chooseConfinement, makeCores } from './confinement.ts'
import type { Model } from './models/model.ts'
import type { Answer, Opening, Profile, Request } from './requests.ts'

export type ImageEngineDeps = Partial<typeof engineOptions.images> & {
  /** The first model, and the second for every profile but `fast`. */
  models: Model[]
  profile: Profile
  /** The score from which on the profile `balanced` runs the second model; 1 is certainly unsafe. */
  suspicion?: number
  /** Each works on one picture at a time, with one core. */
  processes: number
  log: Logger
  onEscape?: OnEscape | undefined
  /** Processor time to open the models; undefined does not limit it, nor the memory at that time. */
  openProcessorMs?: number
}

export type RunningImageEngine = ImageEngine & {
  countWaiting(): number
  /** The reason why the engine cannot scan, or undefined. */
  findFault(): string | undefined
  /** Ends the processes after the pictures that they have. */
  retire(): Promise<void>
  close(): Promise<void>
}

/** Default of `suspicion`: about 3 % of neutral pictures score higher. */
export const defaultSuspicion = 0.1

const defaults = { ...engineOptions.images, suspicion: defaultSuspicion }
const attempts = 2
/** Address space that the kernel counts as data and that is never used: stacks of threads, reserves of V8. */
const untouchedMb = 1024
const noBytes = Buffer.alloc(0)
const program = fileURLToPath(new URL('child/main.ts', import.meta.url))

type Settings = typeof defaults & ImageEngineDeps

/**
 * Classifies pictures in processes of their own. When none can be started, the engine opens all the same and retries.
 */
export async function openImageEngine(deps: ImageEngineDeps): Promise<RunningImageEngine> {
  const settings: Settings = { ...defaults, ...deps }
  const { log, processes } = settings
  const startProcess = makeImageProcesses(settings)
  let state: EngineState | undefined
  const pool = openProcessPool({
    ...settings,
    maxProcesses: processes,
    async start(signal) {
      const { child, versions } = await startProcess(signal)
      state ??= toState(settings, versions)
      return child
    },
  })
  await pool.opened.catch(() => {})

  return {
    name: 'NSFW',
    kind: 'image',
    findState: () => (pool.isUp() ? state : undefined),
    countWaiting: pool.countWaiting,
    findFault() {
      const fault = pool.findFault()
      return fault === undefined ? undefined : `The image engine cannot be started: ${toMessage(fault)}`
    },
    /** Tries a second process when the first died or hung, because the picture may not be the cause. */
    async classify(content: Content, work: Work): Promise<ImageReport> {
      let death: unknown
      for (let attempt = 0; attempt < attempts; attempt++) {
        try {
          return await pool.use((child) => classify(child, content, settings), work)
        } catch (error) {
          if (!(error instanceof ProcessDied)) throw error
          death = error
          log.warn({ err: error }, 'an image process died at work')
        }
      }
      throw new EngineDown(`The image process died ${attempts} times on the same picture`, { cause: death })
    },
    retire: pool.retire,
    close: pool.close,
  }
}

/** Returns a function that starts a process and opens its models. */
function makeImageProcesses(settings: Settings) {
  const { models, profile, suspicion, maxMemoryMb, openProcessorMs, sendMs, startMs } = settings
  const budgetMs = settings.budgetMs[profile]
  const resources = openProcessorMs === undefined ? {} : { maxMemoryMb, maxProcessorMs: openProcessorMs }
  const confinement = chooseConfinement({
    program,
    modelDirs: [...new Set(models.map(({ path }) => dirname(path)))],
    maxDataMb: maxMemoryMb + untouchedMb,
  })
  const cores = makeCores(settings)
  const opening: Request = { kind: 'open', models: toOpen(models, profile), profile, suspicion, budgetMs }

  return async (signal: AbortSignal): Promise<{ child: Child; versions: Record<string, string> }> => {
    const core = cores.take()
    const onEscape = () => settings.onEscape?.('images')
    const child = startChild(settings.name, confinement.wrap(core), { onEscape, stallMs: settings.stallMs })
    void child.ended.then(() => cores.release(core))
    signal.addEventListener('abort', child.kill, { once: true })
    try {
      const answer = await child.sendRequest<Answer>(opening, noBytes, {
        sendMs,
        answerMs: startMs,
        signal,
        ...resources,
      })
      if ('opened' in answer) return { child, versions: answer.opened.versions }
      throw new Error('failure' in answer ? answer.failure : 'The image process did not open its models')
    } catch (error) {
      child.kill()
      await child.ended
      throw error
    } finally {
      signal.removeEventListener('abort', child.kill)
    }
  }
}

async function classify(child: Child, content: Content, settings: Settings): Promise<ImageReport> {
  const request: Request = { kind: 'classify', bytes: content.bytes }
  try {
    const limits = { ...settings, ownsChunks: !content.isInMemory }
    const answer = await child.sendRequest<Answer>(request, toBody(content), limits)
    if ('report' in answer) return answer.report
    throw new EngineDown('failure' in answer ? answer.failure : 'The image process gave no result')
  } catch (error) {
    if (error instanceof LimitExceeded) return { unscanned: 'ScanLimitExceeded' }
    throw error
  }
}

function toOpen([first, second]: Model[], profile: Profile): Opening['models'] {
  if (first === undefined || (second === undefined && profile !== 'fast'))
    throw new Error(`There is no model for the profile ${profile}`)
  const pick = ({ path, form, isOwn }: Model) => ({ path, form, isOwn })
  return { first: pick(first), second: second && pick(second) }
}

/** Increase this when a change of Assay makes the same models give other scores. */
const revision = 'assay-nsfw-5'

/** `nsfwjs MobileNetV2Mid+InceptionV3 int8`, and a hash of everything that the scores depend on. */
function toState({ models, profile, suspicion }: Settings, versions: Record<string, string>): EngineState {
  const basis = [revision, models.map(({ name, sha256, form }) => [name, sha256, form]), profile, suspicion, versions]
  return {
    version: toVersion(models),
    verdictVersion: createHash('sha256').update(JSON.stringify(basis)).digest('hex'),
    signatures: undefined,
    signaturesAt: undefined,
  }
}

/** Names the shipped models together, and the operator's one by one. */
function toVersion(models: Model[]): string {
  const shipped = models.filter(({ isOwn }) => !isOwn)
  const precisions = [...new Set(shipped.map(toPrecision))].join('+')
  const names = shipped.map(({ title }) => title).join('+')
  const own = models.filter(({ isOwn }) => isOwn).map(({ title }) => title)
  return [...(shipped.length === 0 ? [] : [`nsfwjs ${names} ${precisions}`]), ...own].join('; ')
}

/**
 * The file name states the precision. Signed and unsigned bytes, which suit different processors, are both `int8` to
 * operators.
 */
const toPrecision = ({ path }: Model) => (path.endsWith('.fp32.onnx') ? 'fp32' : 'int8')

const toMessage = (fault: unknown) => (fault instanceof Error ? fault.message : String(fault)).slice(0, 300)
