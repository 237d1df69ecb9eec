import { EngineDown, type Work } from '../../domain/ports/engines.ts'
import { makeSemaphore } from '../../domain/semaphore.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { PoolOptions } from './engine-options.ts'
import type { Child } from './start-child.ts'

export type PoolDeps = PoolOptions & {
  /** Starts a process that is ready for work, or throws. */
  start(signal: AbortSignal): Promise<Child>
  /** Closes the pool for new work and ends processes that are still starting. */
  signal?: AbortSignal
  log: Logger
}

/**
 * The processes of one engine. The pool keeps `minProcesses` running, starts more while work waits for them, ends those
 * that are idle for `idleMs`, and replaces those that die or hold too much memory.
 */
export function openProcessPool(deps: PoolDeps) {
  const closing = new AbortController()
  const signal = deps.signal === undefined ? closing.signal : AbortSignal.any([closing.signal, deps.signal])
  const turns = makeSemaphore({ ...deps, count: deps.maxProcesses, maxWaitMs: deps.waitMs })
  const processes = makeProcesses(deps, signal)
  const newClosedError = () => new EngineDown(`The ${deps.name} is stopped`)
  let unfinished = 0
  let onDrained: (() => void) | undefined

  function throwIfClosed() {
    if (signal.aborted) throw newClosedError()
  }

  async function close() {
    closing.abort()
    turns.rejectWaiting(newClosedError)
    await processes.close(newClosedError)
  }

  return {
    /** Resolves when the first processes are ready; rejects when one of them could not be started. */
    opened: processes.opened,
    /**
     * Gives `run` a process of its own, and counts the processor time of the process for the work. The signal of the
     * work ends only the wait for a process. `isNested` is for work that other work of this pool waits for: it takes no
     * turn, because the turn it would wait for may be that of the waiting work.
     */
    async use<T>(run: (child: Child) => Promise<T>, work: Work, { isNested = false } = {}): Promise<T> {
      throwIfClosed()
      unfinished++
      const useProcess = async () => {
        throwIfClosed()
        return processes.use((child) => runMeasured(run, child, work), work.signal)
      }
      try {
        return await (isNested ? useProcess() : turns.use(useProcess, work))
      } finally {
        if (--unfinished === 0) onDrained?.()
      }
    },
    isUp: processes.isUp,
    /** The reason why no process can be started, while none runs. */
    findFault: processes.findFault,
    countWaiting: () => turns.countWaiting() + processes.countWaiting(),
    listPids: processes.listPids,
    /** Call when a process died: if `close` ended it, the content is not the cause, and this throws. */
    throwIfClosed,
    /** Ends the processes after the work that was given to this pool. No work may be given to it afterwards. */
    async retire() {
      if (unfinished > 0) await new Promise<void>((resolve) => (onDrained = resolve))
      await close()
    },
    /** Kills all processes. Work that runs or waits fails with `EngineDown`. */
    close,
  }
}

export type ProcessPool = ReturnType<typeof openProcessPool>

async function runMeasured<T>(run: (child: Child) => Promise<T>, child: Child, work: Work): Promise<T> {
  const endUse = child.pid === undefined ? undefined : work.onUse?.(child.pid, false)
  try {
    return await run(child)
  } finally {
    endUse?.()
  }
}

function makeProcesses(deps: PoolDeps, signal: AbortSignal) {
  const { name, minProcesses, maxIdle = deps.maxProcesses, log } = deps
  /** Every process that has not ended, and those of them that may be given work. */
  const alive = new Set<Child>()
  const ready = new Set<Child>()
  const used = new WeakSet<Child>()
  const idle = makeIdleProcesses(deps.idleMs, endIdle)
  const starter = makeProcessStarter({ ...deps, signal, onStarted: add, onFailed: rejectWhenDown, onRetry: grow })
  const isUp = () => ready.size > 0 || (starter.count() > 0 && !starter.hasFailed())
  const newDownError = () => new EngineDown(`The ${name} cannot be started`, { cause: starter.getFault() })
  let unusedDeaths = 0
  grow()
  const opened = starter.waitForStarts().then(starter.throwIfFailed)
  opened.catch(() => {})

  function rejectWhenDown() {
    if (!isUp()) idle.rejectWaiting(newDownError)
  }

  function grow() {
    if (signal.aborted || starter.isPaused()) return
    const wanted = Math.max(idle.countWaiting(), minProcesses - ready.size)
    while (starter.count() < wanted) starter.startOne()
  }

  function add(child: Child) {
    alive.add(child)
    ready.add(child)
    void child.ended.then(() => remove(child))
    giveBack(child)
  }

  function remove(child: Child) {
    alive.delete(child)
    idle.remove(child)
    if (!ready.delete(child) || signal.aborted) return
    if (minProcesses > 0) log.warn(`the ${name} died and is replaced`)
    // A machine without memory may kill one process. A second death in a row means that the program does not work.
    if (!used.has(child) && ++unusedDeaths > 1) starter.fail(new Error(`The ${name} died before it did any work`))
    grow()
  }

  function giveBack(child: Child) {
    if (signal.aborted) return child.kill()
    if (child.isDead()) return
    if (!child.needsReplacement() && idle.count() < maxIdle) return idle.add(child)
    ready.delete(child)
    child.end()
    grow()
  }

  function endIdle(child: Child) {
    if (ready.size <= minProcesses) return
    ready.delete(child)
    idle.remove(child)
    child.kill()
  }

  return {
    opened,
    async use<T>(work: (child: Child) => Promise<T>, waitSignal: AbortSignal): Promise<T> {
      if (ready.size === 0 && starter.count() === 0 && starter.isPaused()) throw newDownError()
      const taking = idle.take(waitSignal)
      grow()
      const child = await taking
      used.add(child)
      try {
        const result = await work(child)
        starter.recordSuccess()
        unusedDeaths = 0
        return result
      } finally {
        giveBack(child)
      }
    },
    isUp,
    findFault: () => (isUp() ? undefined : starter.getFault()),
    countWaiting: idle.countWaiting,
    listPids: () => [...alive].flatMap(({ pid }) => pid ?? []),
    async close(newClosedError: () => Error) {
      starter.stop()
      idle.rejectWaiting(newClosedError)
      for (const child of alive) child.kill()
      await starter.waitForStarts()
      await Promise.all([...alive].map(({ ended }) => ended))
    },
  }
}

/** Processes without work. `take` waits for one, first come, first served. */
function makeIdleProcesses(idleMs: number, onIdleTooLong: (child: Child) => void) {
  const idle: { child: Child; timer: NodeJS.Timeout | undefined }[] = []
  const permits = makeSemaphore({ count: 0, maxWaitMs: Infinity })

  return {
    add(child: Child) {
      const timer = idleMs === Infinity ? undefined : setTimeout(onIdleTooLong, idleMs, child).unref()
      idle.push({ child, timer })
      permits.release()
    },
    remove(child: Child) {
      const at = idle.findIndex((entry) => entry.child === child)
      if (at === -1) return
      permits.withdraw()
      for (const { timer } of idle.splice(at, 1)) clearTimeout(timer)
    },
    /** Takes the process that worked last: its memory is in the caches, and the others may end. */
    async take(signal: AbortSignal): Promise<Child> {
      for (;;) {
        const permit = permits.acquire({ signal })
        if (permit !== undefined) await permit
        const last = idle.pop()
        clearTimeout(last?.timer)
        if (last !== undefined && !last.child.isDead()) return last.child
      }
    },
    count: () => idle.length,
    countWaiting: permits.countWaiting,
    rejectWaiting: permits.rejectWaiting,
  }
}

const firstRetryMs = 500
const lastRetryMs = 60_000

/** Starts processes for a pool, and pauses after a failure, longer each time, so that a broken engine costs little. */
function makeProcessStarter(
  deps: Pick<PoolDeps, 'name' | 'start' | 'log'> & {
    /** Ends starts and retries. */
    signal: AbortSignal
    onStarted(child: Child): void
    onFailed(): void
    onRetry(): void
  },
) {
  const { name, signal, log } = deps
  const starting = new Set<Promise<void>>()
  let failures = 0
  let fault: unknown
  let retry: NodeJS.Timeout | undefined

  function fail(error: unknown) {
    if (signal.aborted) return
    failures++
    fault = error
    const retryMs = Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs)
    log.error({ err: error, retryMs }, `the ${name} could not be started`)
    clearTimeout(retry)
    retry = setTimeout(() => {
      retry = undefined
      deps.onRetry()
    }, retryMs).unref()
    deps.onFailed()
  }

  return {
    startOne() {
      const attempt: Promise<void> = deps
        .start(signal)
        .finally(() => starting.delete(attempt))
        .then(deps.onStarted, fail)
      starting.add(attempt)
    },
    /** Counts a process that died before it did any work like one that did not start. */
    fail,
    recordSuccess() {
      failures = 0
    },
    count: () => starting.size,
    isPaused: () => retry !== undefined,
    hasFailed: () => failures > 0,
    getFault: () => fault,
    throwIfFailed() {
      if (failures > 0) throw fault
    },
    /** Resolves when no start is under way. */
    waitForStarts: () => Promise.all(starting),
    stop: () => clearTimeout(retry),
  }
}
