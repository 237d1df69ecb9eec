import { type FSWatcher, unwatchFile, watch, watchFile } from 'node:fs'
import type { Logger } from './logger.ts'

const certificatePollMs = 2000

/**
 * Applies a renewed certificate to new connections without a restart. Files are polled, because renewals often replace a
 * symbolic link or a directory. After a certificate that cannot be used, the server continues with the previous one.
 */
export function watchCertificate(deps: {
  /** The files whose changes count. */
  files: readonly string[]
  /** Reads the files and makes the server use them. Throws when they cannot be used. */
  apply(): void
  log: Logger
}) {
  const { files, apply, log } = deps
  const reload = () => {
    try {
      apply()
      log.info({ files }, 'certificate reloaded')
    } catch (error) {
      log.error({ err: error, files }, 'the changed certificate cannot be used; the previous one stays in use')
    }
  }

  for (const file of files) watchFile(file, { interval: certificatePollMs, persistent: false }, reload)
  return () => {
    for (const file of files) unwatchFile(file, reload)
  }
}

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
