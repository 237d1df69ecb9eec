import { constants, copyFile, link, mkdir, unlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Arrival, findFingerprint } from './arrivals.ts'

/** The action on a threat; undefined leaves the file in place. */
export type ThreatAction = { moveTo: string } | { isDeleted: true } | undefined

/** Limit on the numbered names to try for files of the same name. */
const maxNames = 1000

/**
 * Moves or deletes a threat, unless the file has changed since the scan. Never overwrites another file. Returns a
 * message for the user.
 */
export async function quarantine(arrival: Arrival, action: ThreatAction): Promise<string | undefined> {
  if (action === undefined) return undefined
  const { raw, display } = arrival.path
  if ((await findFingerprint(arrival.path)) !== arrival.fingerprint)
    return `${display} has changed since the scan and was not removed.`
  if ('isDeleted' in action) {
    await unlink(raw)
    return `${display} was deleted.`
  }
  await mkdir(action.moveTo, { recursive: true, mode: 0o700 })
  for (let n = 0; n < maxNames; n++) {
    const to = join(action.moveTo, basename(display) + (n === 0 ? '' : `.${n}`))
    if (await copyToNewName(raw, to)) {
      await unlink(raw)
      return `${display} was moved to ${to}.`
    }
  }
  throw new Error(`${action.moveTo} already has ${maxNames} files named ${basename(display)}`)
}

/** Links or copies the file to `to`; false if `to` exists. A rename would overwrite it. */
async function copyToNewName(from: string | Buffer, to: string): Promise<boolean> {
  try {
    await link(from, to).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') throw error
      // Hard links fail across file systems, and some file systems have none.
      await copyFile(from, to, constants.COPYFILE_EXCL)
    })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
