import { type FSWatcher, watch } from 'node:fs'

/** Pause after a change: files are written in pieces, and loading a partial file would fail. */
const delayMs = 300

/**
 * Calls `onChange` soon after a change in the directories, and every `pollMs` in any case, because network file systems
 * and directories that do not exist yet send no events. Does not keep the process alive.
 */
export function watchDirectories(deps: { dirs: string[]; pollMs: number; onChange(): void }) {
  const watchers = new Map<string, FSWatcher>()
  let pendingCall: NodeJS.Timeout | undefined

  const schedule = () => {
    clearTimeout(pendingCall)
    pendingCall = setTimeout(deps.onChange, delayMs).unref()
  }
  const listen = () => {
    for (const dir of deps.dirs) {
      if (watchers.has(dir)) continue
      try {
        const watcher = watch(dir, { persistent: false }, schedule)
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
      clearTimeout(pendingCall)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}
