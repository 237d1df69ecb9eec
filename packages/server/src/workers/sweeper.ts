import type { Logger } from '../runtime/logger.ts'

/** `sweep` says how many things it removed. */
export type CleanupTask = { name: string; sweep(): Promise<number> }

const everyMs = 60_000

type Deps = {
  cleanupTasks: CleanupTask[]
  log: Logger
  /** The database is away: somebody else says so, and the other cleanup tasks may wait as well. */
  isOutage?(error: unknown): boolean
}

/** Removes what crashes left behind and what is old enough, at the start and then every minute. */
export async function openSweeper(deps: Deps) {
  let running: Promise<void> | undefined
  const sweep = () => {
    running ??= sweepAll(deps).finally(() => {
      running = undefined
    })
    return running
  }
  await sweep()
  const timer = setInterval(sweep, everyMs)
  timer.unref()
  return {
    async close() {
      clearInterval(timer)
      await running
    },
  }
}

async function sweepAll({ cleanupTasks, log, isOutage }: Deps) {
  for (const { name, sweep } of cleanupTasks) {
    try {
      const removed = await sweep()
      if (removed > 0) log.info({ removed }, `swept: ${name}`)
    } catch (error) {
      if (isOutage?.(error)) return
      log.error({ err: error }, `could not sweep: ${name}`)
    }
  }
}
