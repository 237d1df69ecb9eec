import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { takeFileLock } from '../../../runtime/file-lock.ts'
import { removeOutsideDir } from '../../../runtime/outside-dir.ts'
import { removeTree } from '../../../runtime/remove-tree.ts'
import { scratchName } from '../../jail/sandbox.ts'

const lockName = /^(\d+)\.lock$/

/**
 * Opens a directory below `parent` that no other engine and no other process uses: the service and the command
 * `assay scan` may run at the same time. The kernel releases the lock of a process that ends in any way, and the next
 * call removes the files that such a process has left.
 */
export function openOwnDir(parent: string): { path: string; remove(): void } {
  // Every user may enter, because the programs run as one that owns nothing.
  mkdirSync(parent, { recursive: true, mode: 0o711 })
  removeAbandoned(parent)
  for (let number = 0; ; number++) {
    const lock = takeFileLock(join(parent, `${number}.lock`))
    if ('heldBy' in lock) continue
    const path = join(parent, String(number))
    removeDir(path)
    mkdirSync(path, { mode: 0o711 })
    return {
      path,
      remove() {
        removeDir(path)
        lock.release()
      },
    }
  }
}

function removeAbandoned(parent: string) {
  for (const name of readdirSync(parent)) {
    const number = lockName.exec(name)?.[1]
    if (number === undefined) continue
    const lock = takeFileLock(join(parent, name))
    if ('heldBy' in lock) continue
    removeDir(join(parent, number))
    lock.release()
  }
}

/** Removes the directory and its scratch directory elsewhere. */
function removeDir(path: string) {
  removeOutsideDir(join(path, scratchName))
  removeTree(path)
}
