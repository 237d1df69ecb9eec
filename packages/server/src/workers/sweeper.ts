import type { Logger } from '../runtime/logger.ts'

/** `sweep` returns how many things it removed. */
export type CleanupTask = { name: string; sweep(): Promise<number> }

const everyMs = 60_000

type Deps = {
  cleanupTasks: CleanupTask[]
  log: Logger
  /** Whether the database is unreachable; the remaining tasks wait for the next round then. */
  isOutage?(error: unknown): boolean
}

/** Runs all cleanup tasks before it returns, and then every minute. */
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
      if (removed > 0) log.info({ removed }, `cleaned up: ${name}`)
    } catch (error) {
      if (isOutage?.(error)) return
      log.error({ err: error }, `cannot clean up: ${name}`)
    }
  }
}
