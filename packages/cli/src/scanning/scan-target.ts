import { createReadStream } from 'node:fs'
import { basename, extname } from 'node:path'
import { Aborted } from '@assay/client'
import { type Target, toDisplay, toFileError } from '../targets/target.ts'
import { imageExtensions, type Kind, limits, maxNameLength } from './limits.ts'
import { newFailure, type Outcome, toFailure } from './outcome.ts'
import { isImageHead, makeReadFile, type ReadFile, readStream } from './read-content.ts'
import { makeSendContent, type SendDeps, type SendInput } from './send-content.ts'

type FileTarget = Extract<Target, { kind: 'file' }>
type StreamTarget = Extract<Target, { kind: 'stream' }>

/** Scans one target. Never throws: every error is an outcome. Several targets can be scanned at the same time. */
export function makeScanTarget(deps: SendDeps) {
  const { kind, signal } = deps
  const { sendFile, sendUrl } = makeSendContent(deps)
  const readFile = makeReadFile()

  return async (target: Target, onSent: SendInput['onSent']): Promise<Outcome> => {
    try {
      if (target.kind === 'skipped') return { kind: 'skipped', reason: target.reason }
      if (target.kind === 'unreadable') return newFailure(target.reason, target.code)
      if (target.kind === 'url') return await sendUrl(target.url)
      return target.kind === 'stream' ? await scanStream(target, onSent) : await scanFile(target, onSent)
    } catch (error) {
      return signal.aborted ? { kind: 'unfinished' } : toFailure(error)
    }
  }

  async function scanFile(target: FileTarget, onSent: SendInput['onSent']): Promise<Outcome> {
    const { path, isNamed } = target
    let file: ReadFile
    try {
      file = await readFile(path, target)
    } catch (error) {
      const { code, reason } = toFileError(error)
      return newFailure(reason, code)
    }
    if (file.size === 0) return { kind: 'empty' }
    if (kind === 'nsfw' && !isNamed && !isImageHead(file.head)) return { kind: 'skipped', reason: 'Not an image' }
    const { sync, async } = limits[kind]
    if (file.size > async) return newFailure(`Larger than ${async / 1024 / 1024} MB`, 'TooLarge')
    const input = file.whole ?? (typeof path.raw === 'string' ? path.raw : createReadStream(path.raw))
    // The client takes the name of a file that it opens from the path.
    const name = typeof input === 'string' ? undefined : findContentName(path.display, kind)
    return await sendFile({ input, name, isLarge: file.size > sync, onSent })
  }

  async function scanStream(target: StreamTarget, onSent: SendInput['onSent']): Promise<Outcome> {
    const stream = target.open()
    // A stream that delivers nothing ignores the signal, so an interrupt must destroy it.
    const stop = () => stream.destroy(new Aborted('Interrupted'))
    signal.addEventListener('abort', stop)
    try {
      const input = await readStream(stream)
      const isWhole = Buffer.isBuffer(input)
      if (isWhole && input.length === 0) return newFailure('No data received', 'Empty')
      return await sendFile({ input, name: findContentName(toDisplay(target), kind), isLarge: !isWhole, onSent })
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
}

/** The base name of a path, or undefined if the service would reject it: a name is not worth a failed scan. */
function findContentName(path: string, kind: Kind): string | undefined {
  const name = basename(path)
  if (name.trim() === '' || name.length > maxNameLength || /[\p{Cc}\p{Cs}]/u.test(name)) return undefined
  if (kind === 'nsfw' && !['', ...imageExtensions].includes(extname(name).toLowerCase())) return undefined
  return name
}
