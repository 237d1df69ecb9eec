import { type FSWatcher, watch } from 'node:fs'

/** Files are written in pieces; loading a partial file would fail. */
const settleMs = 300

/**
 * Calls `onChange` soon after a change in the directories, and every `pollMs` in any case, because network file systems
 * and directories that do not exist yet send no events. Does not keep the process alive.
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
        // The directory does not exist yet; the next poll tries again.
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
