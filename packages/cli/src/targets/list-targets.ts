import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { expandGlob, isGlob } from './glob.ts'
import { toPlace } from './place.ts'
import { type Target, toUnreadable } from './target.ts'
import { type WalkOptions, walk } from './walk.ts'

/** What the arguments stand for, one after the other, as it is found. */
export async function* listTargets(
  args: string[],
  options: WalkOptions & { stdinName: string },
): AsyncGenerator<Target> {
  for (const arg of args) {
    if (arg === '-') yield { kind: 'stream', shown: options.stdinName, open: () => process.stdin }
    else if (/^https?:\/\//i.test(arg)) yield { kind: 'url', url: arg }
    else yield* listPath(arg, options)
  }
}

async function* listPath(path: string, options: WalkOptions): AsyncGenerator<Target> {
  const found = await findStats(path)
  if (!(found instanceof Error) || !isGlob(path)) {
    yield* listFound(path, found, options)
    return
  }
  let count = 0
  for await (const match of expandGlob(path)) {
    count++
    yield* listFound(match, await findStats(match), options)
  }
  if (count === 0) yield { kind: 'unreadable', place: toPlace(path), code: 'ENOENT', reason: 'No file matches' }
}

const findStats = (path: string) => stat(path).catch((error: Error) => error)

async function* listFound(path: string, found: Stats | Error, options: WalkOptions): AsyncGenerator<Target> {
  const place = toPlace(path)
  if (found instanceof Error) yield toUnreadable(place, found)
  else if (found.isDirectory()) yield* walk(place, options)
  else if (found.isFile()) yield { kind: 'file', place, isNamed: true }
  // `<(command)` of the shell is one.
  else if (found.isFIFO()) yield { kind: 'stream', shown: path, open: () => createReadStream(path) }
  else yield { kind: 'unreadable', place, code: '', reason: 'Not a file' }
}
