import { EngineBusy, EngineDown } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { makeLine } from '../worker/wait-queue.ts'
import type { ImageProcess } from './image-process.ts'

type Deps = {
  start(signal: AbortSignal): Promise<ImageProcess>
  /** At most. Each works on one picture at a time. */
  processes: number
  maxWaiting: number
  waitMs: number
  /** What has no work for so long is ended, but for one. */
  idleMs: number
  log: Logger
}

const firstRetryMs = 500
const lastRetryMs = 60_000

/** One process is always there, more come as there is work for them. One that dies is replaced; who waits does not notice. */
export function openProcessPool(deps: Deps) {
  const { processes, idleMs, log } = deps
  const ready = new Set<ImageProcess>()
  const idle: { process: ImageProcess; timer: NodeJS.Timeout }[] = []
  const starting = new Set<Promise<void>>()
  /** Those that were given work: that one of these dies is the work's fault. */
  const tried = new WeakSet<ImageProcess>()
  const closing = new AbortController()
  let failures = 0
  let fault: unknown
  let retry: NodeJS.Timeout | undefined

  const line = makeLine<ImageProcess>({
    ...deps,
    toFull: () => new EngineBusy(`${deps.maxWaiting} pictures wait already`),
    toLate: () => new EngineBusy(`No turn within ${deps.waitMs} ms`),
  })
  const newDown = () => new EngineDown('The image engine cannot be started', { cause: fault })
  const toClosed = () => new EngineDown('The image engine is closed')

  /** Starts as many as there are pictures waiting, and one in any case. */
  const grow = () => {
    if (closing.signal.aborted || retry !== undefined) return
    const wanted = Math.min(processes, Math.max(1, ready.size + line.count()))
    while (ready.size + starting.size < wanted) startOne()
  }

  const startOne = () => {
    const attempt: Promise<void> = deps
      .start(closing.signal)
      .finally(() => starting.delete(attempt))
      .then(take, failStart)
    starting.add(attempt)
  }

  const take = (process: ImageProcess) => {
    ready.add(process)
    process.ended.then(() => forget(process))
    offer(process)
  }

  const offer = (process: ImageProcess) => {
    if (closing.signal.aborted) return process.kill()
    if (process.isDead() || line.give(process)) return
    const one = { process, timer: setTimeout(() => endIdle(one), idleMs).unref() }
    idle.push(one)
  }

  const endIdle = (one: (typeof idle)[number]) => {
    if (ready.size <= 1) return
    idle.splice(idle.indexOf(one), 1)
    ready.delete(one.process)
    one.process.kill()
  }

  const findIdle = (): ImageProcess | undefined => {
    for (let one = idle.pop(); one !== undefined; one = idle.pop()) {
      clearTimeout(one.timer)
      if (!one.process.isDead()) return one.process
    }
    return undefined
  }

  const forget = (process: ImageProcess) => {
    const wasReady = ready.delete(process)
    if (closing.signal.aborted || !wasReady) return
    log.warn('an image process ended and is replaced')
    if (!tried.has(process)) failStart(new Error('An image process ended before it was asked anything'))
    grow()
  }

  const failStart = (error: unknown) => {
    if (closing.signal.aborted) return
    failures++
    fault = error
    const retryMs = Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs)
    log.error({ err: error, retryMs }, 'an image process could not be started')
    clearTimeout(retry)
    retry = setTimeout(() => {
      retry = undefined
      grow()
    }, retryMs).unref()
    if (!isUp()) line.turnAllAway(newDown)
  }

  const isUp = () => ready.size > 0 || (starting.size > 0 && failures === 0)

  grow()
  return {
    /** Resolves when the first process is there, or could not be started. */
    completed: Promise.all(starting).then(() => {}),
    /** Gives `work` a process of its own. The signal is for waiting alone. */
    async use<T>(work: (process: ImageProcess) => Promise<T>, signal: AbortSignal): Promise<T> {
      signal.throwIfAborted()
      if (closing.signal.aborted) throw toClosed()
      const process = findIdle() ?? (await wait(signal))
      tried.add(process)
      try {
        const result = await work(process)
        failures = 0
        return result
      } finally {
        offer(process)
      }
    },
    isUp,
    findFault: () => (isUp() ? undefined : fault),
    countWaiting: line.count,
    /** Ends every process, at work or not. Who waits or works is told that the engine is down. */
    async close() {
      closing.abort()
      clearTimeout(retry)
      for (const { timer } of idle.splice(0)) clearTimeout(timer)
      line.turnAllAway(toClosed)
      await Promise.all(starting)
      for (const process of ready) process.kill()
      await Promise.all([...ready].map(({ ended }) => ended))
    },
  }

  function wait(signal: AbortSignal): Promise<ImageProcess> {
    if (ready.size === 0 && starting.size === 0 && retry !== undefined) throw newDown()
    const given = line.wait(signal)
    grow()
    return given
  }
}
