import type { Logger } from '../runtime/logger.ts'

/** `sweep` says how many things it removed. */
export type Chore = { name: string; sweep(): Promise<number> }

const everyMs = 60_000

/** Removes what crashes left behind and what is old enough, at the start and then every minute. */
export async function openSweeper(deps: { chores: Chore[]; log: Logger }) {
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

async function sweepAll({ chores, log }: { chores: Chore[]; log: Logger }) {
  for (const { name, sweep } of chores) {
    try {
      const removed = await sweep()
      if (removed > 0) log.info({ removed }, `swept: ${name}`)
    } catch (error) {
      log.error({ err: error }, `could not sweep: ${name}`)
    }
  }
}
