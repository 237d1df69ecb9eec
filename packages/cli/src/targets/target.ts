import type { Readable } from 'node:stream'
import type { Place } from './place.ts'

/** One thing to scan, or one that cannot be. */
export type Target =
  /** `isNamed`: the person named this very file, or a pattern for it; the others were found in a directory. */
  | { kind: 'file'; place: Place; isNamed: boolean }
  | { kind: 'url'; url: string }
  /** Read once. */
  | { kind: 'stream'; shown: string; open(): Readable }
  | { kind: 'unreadable'; place: Place; code: string; reason: string }
  /** Found in a directory, and not of a kind that is scanned. */
  | { kind: 'skipped'; place: Place; reason: string }

export const toShown = (target: Target): string =>
  'place' in target ? target.place.shown : target.kind === 'url' ? target.url : target.shown

export const toUnreadable = (place: Place, error: unknown): Target => ({
  kind: 'unreadable',
  place,
  ...toFileFault(error),
})

/** What the system says of a file, in words. */
export function toFileFault(error: unknown): { code: string; reason: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return { code, reason: reasons[code] ?? (error instanceof Error ? error.message : String(error)) }
}

const reasons: Record<string, string> = {
  ENOENT: 'No such file or directory',
  ENOTDIR: 'No such file or directory',
  EACCES: 'Permission denied',
  EPERM: 'Permission denied',
  ELOOP: 'Symbolic links that lead nowhere',
  EMFILE: 'Too many open files, use a smaller --parallel',
  ENFILE: 'Too many open files in the system',
  ENAMETOOLONG: 'The name is too long',
  EIO: 'The disk could not read it',
}
