import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  lstatSync,
  openSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'

/**
 * Removes a file, or a directory with everything below. Directories of other users than root are emptied by a process
 * of their user: there, a name can become a link at any time, and root would follow it.
 */
export function removeTree(path: string) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isDirectory()) return unlinkSync(path)
  if (found.uid === 0 && process.getuid?.() === 0) for (const name of readdirSync(path)) removeTree(join(path, name))
  else emptyAsOwner(path, found)
  rmdirSync(path)
}

/**
 * The user may have made directories that it cannot list, and paths that are too long for one call: `find` enters one
 * directory after the other. The outermost is entered before the process becomes the user, who may be unable to reach
 * it by its path.
 */
function emptyAsOwner(dir: string, { uid, gid }: { uid: number; gid: number }) {
  const user = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs', '--bounding-set=-all']
  const asUser = uid === process.getuid?.() ? [] : ['setpriv', ...user, '--']
  const [command = '', ...args] = [...asUser, 'sh', '-c', 'chmod -R u+rwx .; exec find . -mindepth 1 -delete']
  try {
    openToOwner(dir)
  } catch {
    // The directory belongs to a user whom this process cannot become, as the exit status tells.
  }
  const { status } = spawnSync(command, args, { cwd: dir, env: { PATH: process.env.PATH }, stdio: 'ignore' })
  if (status !== 0) throw new Error(`${dir} belongs to another user (uid ${uid}) and cannot be emptied. Remove it.`)
}

/** Root follows no link here: another user can write to the directory around. */
function openToOwner(dir: string) {
  if (process.getuid?.() !== 0) return chmodSync(dir, 0o700)
  const descriptor = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  fchmodSync(descriptor, 0o700)
  closeSync(descriptor)
}
