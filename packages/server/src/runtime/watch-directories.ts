import { type FSWatcher, watch } from 'node:fs'

const settleMs = 300

/** Calls back soon after something in the directories changed, and every now and then in case the system said nothing. */
export function watchDirectories(deps: { dirs: string[]; pollMs: number; onChange(): void }) {
  let settling: NodeJS.Timeout | undefined
  const poll = setInterval(deps.onChange, deps.pollMs)
  poll.unref()
  const watchers = deps.dirs.flatMap((dir): FSWatcher[] => {
    try {
      const watcher = watch(dir, () => {
        clearTimeout(settling)
        settling = setTimeout(deps.onChange, settleMs)
      })
      watcher.on('error', () => {})
      return [watcher]
    } catch {
      return []
    }
  })
  return {
    close() {
      clearTimeout(settling)
      clearInterval(poll)
      for (const watcher of watchers) watcher.close()
    },
  }
}
