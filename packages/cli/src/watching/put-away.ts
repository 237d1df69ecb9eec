import { constants, copyFile, link, mkdir, unlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Arrival, findPrint } from './arrivals.ts'

/** What is done with a threat; undefined leaves it where it is. */
export type Away = { moveTo: string } | { isDeleted: true } | undefined

const maxNames = 1000

/**
 * Moves or deletes the file that was scanned, and no other that has taken its place since. Gives a sentence for the
 * person. Nothing is ever written over.
 */
export async function putAway(arrival: Arrival, away: Away): Promise<string | undefined> {
  if (away === undefined) return undefined
  const { raw, shown } = arrival.place
  if ((await findPrint(arrival.place)) !== arrival.print)
    return `${shown} has changed since it was scanned, and is left.`
  if ('isDeleted' in away) {
    await unlink(raw)
    return `${shown} was deleted.`
  }
  await mkdir(away.moveTo, { recursive: true, mode: 0o700 })
  for (let n = 0; n < maxNames; n++) {
    const to = join(away.moveTo, basename(shown) + (n === 0 ? '' : `.${n}`))
    if (await takeName(raw, to)) {
      await unlink(raw)
      return `${shown} was moved to ${to}.`
    }
  }
  throw new Error(`${away.moveTo} has ${maxNames} files of the name ${basename(shown)}`)
}

/** False when there is a file of that name. A rename would write over it. */
async function takeName(from: string | Buffer, to: string): Promise<boolean> {
  try {
    await link(from, to).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') throw error
      // Another file system, or one without links.
      await copyFile(from, to, constants.COPYFILE_EXCL)
    })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
