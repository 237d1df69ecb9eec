import { accessSync, chmodSync, constants, lstatSync, mkdtempSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeTree } from './remove-tree.ts'

/**
 * A directory in one that all users can write to, such as `/tmp`. Its name is random, so that no other user can create
 * it first, and the link `remembered`, in a directory of this process, keeps it for the next start. Other users can
 * enter it, and not write to it. It is made in the first of the parents that can be written to.
 */
export function openOutsideDir(parents: string[], remembered: string): string {
  const known = findOutsideDir(remembered)
  if (known !== undefined && isWritable(known)) return known
  rmSync(remembered, { force: true })
  const made = makeIn(parents)
  chmodSync(made, 0o711)
  symlinkSync(made, remembered)
  return made
}

function isWritable(dir: string): boolean {
  try {
    accessSync(dir, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function makeIn([parent = '/', ...others]: string[]): string {
  try {
    return mkdtempSync(join(parent, 'assay-'))
  } catch (error) {
    if (others.length === 0) throw error
    return makeIn(others)
  }
}

/** Directories for sockets whose path below the data directory would be too long. */
export const shortDirs = [tmpdir(), '/dev/shm', '/run']

/** The directory that `openOutsideDir` has made, if it still is what it was. */
export function findOutsideDir(remembered: string): string | undefined {
  try {
    const dir = readlinkSync(remembered)
    const found = lstatSync(dir)
    return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0 ? dir : undefined
  } catch {
    return undefined
  }
}

export function removeOutsideDir(remembered: string) {
  const dir = findOutsideDir(remembered)
  if (dir !== undefined) removeTree(dir)
  rmSync(remembered, { force: true })
}
