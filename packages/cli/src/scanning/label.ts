import { basename, extname } from 'node:path'
import type { Kind } from './limits.ts'

/** The last part of a path, as far as the service takes it for a name; a label is not worth a refusal. */
export function findLabel(path: string, kind: Kind): string | undefined {
  const name = basename(path)
  if (name.trim() === '' || name.length > 255 || /[\p{Cc}\p{Cs}]/u.test(name)) return undefined
  if (kind === 'nsfw' && !imageExtensions.includes(extname(name).toLowerCase())) return undefined
  return name
}

const imageExtensions = ['', '.jpg', '.jpeg', '.png', '.gif', '.webp']
