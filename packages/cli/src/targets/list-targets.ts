import { createReadStream, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { toFilePath } from './file-path.ts'
import { expandGlob, isGlob } from './glob.ts'
import { type Target, toUnreadable } from './target.ts'
import { type WalkOptions, walk } from './walk.ts'

/** Expands the arguments into targets, one by one as they are found. */
export async function* listTargets(
  args: string[],
  options: WalkOptions & { stdinName: string },
): AsyncGenerator<Target> {
  for (const arg of args) {
    if (arg === '-') yield { kind: 'stream', display: options.stdinName, open: () => process.stdin }
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
  if (count === 0) yield { kind: 'unreadable', path: toFilePath(path), code: 'ENOENT', reason: 'No file matches' }
}

const findStats = (path: string) => stat(path).catch((error: Error) => error)

async function* listFound(text: string, found: Stats | Error, options: WalkOptions): AsyncGenerator<Target> {
  const path = toFilePath(text)
  if (found instanceof Error) yield toUnreadable(path, found)
  else if (found.isDirectory()) yield* walk(path, options)
  else if (found.isFile()) yield { kind: 'file', path, isNamed: true }
  // `<(command)` in a shell is a named pipe.
  else if (found.isFIFO()) yield { kind: 'stream', display: text, open: () => createReadStream(text) }
  else yield { kind: 'unreadable', path, code: '', reason: 'Not a file' }
}
