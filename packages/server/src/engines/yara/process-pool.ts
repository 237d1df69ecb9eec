import { EngineDown } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { startWithRules } from './compile-rules.ts'
import type { RuleFile } from './rule-files.ts'
import { makeSemaphore } from './slots.ts'
import type { Compiled } from './wire.ts'
import type { ProcessOptions, YaraProcess } from './yara-process.ts'

export type PoolDeps = ProcessOptions & {
  /** Each scans one content at a time and holds the rules in its memory. */
  processes: number
  maxWaiting: number
  waitMs: number
  compileMs: number
  /** Ends processes that still compile. */
  signal: AbortSignal
  log: Logger
}

export type ProcessPool = {
  compiled: Compiled
  /** Gives `work` a process of its own. Throws `EngineDown` when none can be had. */
  use<T>(work: (process: YaraProcess) => Promise<T>, signal: AbortSignal): Promise<T>
  /** False when no process could be started again. */
  isUp(): boolean
  /** Ends the processes when all that was asked of them is done. */
  retire(): Promise<void>
  /** Ends them now. */
  kill(): Promise<void>
}

/** Processes with one set of rules. One that dies is started again, with the same rules. */
export async function openProcessPool(deps: PoolDeps, files: RuleFile[]): Promise<ProcessPool> {
  const { log } = deps
  const first = await startWithRules(files, deps)
  const { compiled } = first
  const refused = new Set(compiled.refused.map(({ file }) => file))
  const sound = files.filter(({ file }) => !refused.has(file))
  const places: Place[] = Array.from({ length: deps.processes }, () => newPlace())
  const semaphore = makeSemaphore(places, deps)
  let isClosed = false

  /** What is there, on its way, or started now because the last attempt failed. */
  const getProcess = (place: Place): Promise<YaraProcess> => {
    if (isClosed) return Promise.reject(new EngineDown('YARA is closed'))
    if (place.process?.isDead()) forget(place)
    place.starting ??= fill(place, startWithRules(sound, deps))
    return place.starting
  }

  const forget = (place: Place) => {
    place.process = undefined
    place.starting = undefined
  }

  const fill = async (place: Place, started: Promise<{ process: YaraProcess }>): Promise<YaraProcess> => {
    try {
      const { process } = await started
      place.isDown = false
      place.process = process
      process.ended.then(() => replace(place, process))
      return process
    } catch (error) {
      place.isDown = true
      forget(place)
      throw error
    }
  }

  /** At once, so that the next scan need not wait; unless a scan was faster. */
  const replace = (place: Place, process: YaraProcess) => {
    if (isClosed || process.isWorn()) return
    log.warn('a YARA process died and is started again')
    if (place.process === process || place.starting === undefined) startAgain(place)
  }

  const renew = (place: Place, worn: YaraProcess) => {
    forget(place)
    worn.end()
    startAgain(place)
  }

  const startAgain = (place: Place) => {
    getProcess(place).catch((error) => {
      if (!deps.signal.aborted) log.error({ err: error }, 'a YARA process could not be started again')
    })
  }

  const end = async (how: (process: YaraProcess) => void) => {
    isClosed = true
    const running = await Promise.allSettled(places.map(({ starting }) => starting))
    for (const outcome of running) {
      if (outcome.status !== 'fulfilled' || outcome.value === undefined) continue
      how(outcome.value)
      await outcome.value.ended
    }
  }

  const [firstPlace, ...others] = places
  if (firstPlace !== undefined) firstPlace.starting = fill(firstPlace, Promise.resolve(first))
  try {
    await Promise.all(others.map(getProcess))
  } catch (error) {
    await end((process) => process.kill())
    throw error
  }

  return {
    compiled,
    use: (work, signal) =>
      semaphore.use(async (place) => {
        const process = await getProcess(place)
        try {
          return await work(process)
        } finally {
          if (process.isWorn()) renew(place, process)
        }
      }, signal),
    isUp: () => places.some(({ isDown }) => !isDown),
    async retire() {
      await semaphore.drain()
      await end((process) => process.end())
    },
    kill: () => end((process) => process.kill()),
  }
}

type Place = {
  /** The last attempt to start one failed. */
  isDown: boolean
  starting: Promise<YaraProcess> | undefined
  process: YaraProcess | undefined
}

const newPlace = (): Place => ({ isDown: false, starting: undefined, process: undefined })
