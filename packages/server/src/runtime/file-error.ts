import { resolve, sep } from 'node:path'

/** Says what to do about an error of a file in the data directory, or on the way to it; undefined for other errors. */
export function explainFileError(error: unknown, dataDir: string): string | undefined {
  const { code = '', path } = error as NodeJS.ErrnoException
  return typeof path === 'string' && isRelated(path, dataDir) ? toSentence(code, path, resolve(dataDir)) : undefined
}

export const diskFull = (dataDir: string) =>
  `The disk of the data directory ${dataDir} is full. Make room on it, or ${useAnother}`

const useAnother = 'set ASSAY_DATA_DIR to another directory.'

function toSentence(code: string, path: string, dataDir: string): string | undefined {
  switch (code) {
    case 'EROFS':
      return `The data directory ${dataDir} is on a file system that is mounted read-only. Mount it writable, or ${useAnother}`
    case 'EACCES':
    case 'EPERM':
      return `The user with the id ${process.getuid?.()} may not use ${path}. Make it the owner of the data directory, or ${useAnother}`
    case 'ENOTDIR':
    case 'EEXIST':
      return `${dataDir} cannot be the data directory, because a part of this path is a file: ${useAnother}`
    case 'ENOSPC':
    case 'EDQUOT':
      return diskFull(dataDir)
    default:
      return undefined
  }
}

function isRelated(path: string, dataDir: string): boolean {
  const [one, other] = [resolve(path) + sep, resolve(dataDir) + sep]
  return one.startsWith(other) || other.startsWith(one)
}
