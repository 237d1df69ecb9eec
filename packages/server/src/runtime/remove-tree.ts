import { spawnSync } from 'node:child_process'
import { lstatSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Removes a file, or a directory of this process with everything below. A directory below that belongs to another user
 * is emptied by a process of that user: there, a name can become a link at any time, and root would follow it.
 */
export function removeTree(path: string) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isDirectory()) return unlinkSync(path)
  if (found.uid === process.getuid?.()) for (const name of readdirSync(path)) removeTree(join(path, name))
  else emptyAsOwner(path, found)
  rmdirSync(path)
}

/** The directory is entered before the process becomes the user, who may be unable to reach it by its path. */
function emptyAsOwner(dir: string, { uid, gid }: { uid: number; gid: number }) {
  const user = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs', '--bounding-set=-all']
  const { status } = spawnSync('setpriv', [...user, '--', 'find', '.', '-mindepth', '1', '-delete'], {
    cwd: dir,
    env: { PATH: process.env.PATH },
    stdio: 'ignore',
  })
  if (status !== 0) throw new Error(`${dir} belongs to another user (uid ${uid}) and cannot be emptied. Remove it.`)
}
