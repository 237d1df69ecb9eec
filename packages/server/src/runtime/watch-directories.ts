import { type FSWatcher, watch } from 'node:fs'

/** A file is written in pieces; half of one would be refused. */
const settleMs = 300

/**
 * Calls back soon after something in the directories changed, and every `pollMs` in any case: network file systems and
 * directories that do not exist yet tell nothing. Does not keep the process alive.
 */
export function watchDirectories(deps: { dirs: string[]; pollMs: number; onChange(): void }) {
  const watchers = new Map<string, FSWatcher>()
  let settling: NodeJS.Timeout | undefined

  const note = () => {
    clearTimeout(settling)
    settling = setTimeout(deps.onChange, settleMs).unref()
  }
  const listen = () => {
    for (const dir of deps.dirs) {
      if (watchers.has(dir)) continue
      try {
        const watcher = watch(dir, { persistent: false }, note)
        watchers.set(dir, watcher)
        watcher.on('error', () => {
          watcher.close()
          watchers.delete(dir)
        })
      } catch {
        // Not there yet: the next round looks again.
      }
    }
  }

  listen()
  const poll = setInterval(() => {
    listen()
    deps.onChange()
  }, deps.pollMs).unref()

  return {
    close() {
      clearInterval(poll)
      clearTimeout(settling)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}
