import { type FSWatcher, watch } from 'node:fs'

const settleMs = 200

/**
 * Says `look` soon after something changed in the directory, and every `pollMs` in any case: network file systems and
 * directories that do not exist yet tell nothing. Returns how to stop it.
 */
export function watchRules(dir: string, pollMs: number, look: () => void): () => void {
  let watcher: FSWatcher | undefined
  let settling: NodeJS.Timeout | undefined

  const note = () => {
    // A file is written in pieces; half of one would be refused.
    clearTimeout(settling)
    settling = setTimeout(look, settleMs).unref()
  }
  const listen = () => {
    try {
      watcher = watch(dir, { persistent: false }, note)
      watcher.on('error', () => {
        watcher?.close()
        watcher = undefined
      })
    } catch {
      watcher = undefined
    }
  }

  listen()
  const poll = setInterval(() => {
    if (watcher === undefined) listen()
    look()
  }, pollMs).unref()

  return () => {
    clearInterval(poll)
    clearTimeout(settling)
    watcher?.close()
  }
}
