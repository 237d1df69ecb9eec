import type { Readable } from 'node:stream'
import type { FilePath } from './file-path.ts'

/** Something to scan, or something that cannot be scanned. */
export type Target =
  /** `isNamed`: the user named this file or a pattern that matches it; other files were found in a directory. */
  | { kind: 'file'; path: FilePath; isNamed: boolean }
  | { kind: 'url'; url: string }
  /** Content that can be read once. */
  | { kind: 'stream'; display: string; open(): Readable }
  | { kind: 'unreadable'; path: FilePath; code: string; reason: string }
  /** Found in a directory, and not a regular file. */
  | { kind: 'skipped'; path: FilePath; reason: string }

export const toDisplay = (target: Target): string =>
  'path' in target ? target.path.display : target.kind === 'url' ? target.url : target.display

export const toUnreadable = (path: FilePath, error: unknown): Target => ({
  kind: 'unreadable',
  path,
  ...toFileError(error),
})

/** Describes an error of the file system. */
export function toFileError(error: unknown): { code: string; reason: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return { code, reason: reasons[code] ?? (error instanceof Error ? error.message : String(error)) }
}

const reasons: Record<string, string> = {
  ENOENT: 'No such file or directory',
  ENOTDIR: 'No such file or directory',
  EACCES: 'Permission denied',
  EPERM: 'Permission denied',
  ELOOP: 'Too many symbolic links',
  EMFILE: 'Too many open files: use a smaller --parallel',
  ENFILE: 'Too many open files in the system',
  ENAMETOOLONG: 'File name too long',
  EIO: 'Read error on the disk',
}
