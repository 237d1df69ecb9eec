import { lstat, opendir } from 'node:fs/promises'

/** Patterns reach the program from shells that do not expand them, and from quoted arguments. */
export const isGlob = (text: string): boolean => /[*?[]/.test(text)

/**
 * Lists the paths that match a pattern of `*` and `?` within a name, `[a-z]`, `[!a-z]`, and `**` for any depth of
 * directories. As in shells, only a literal dot matches a leading dot, and `**` does not follow links. After `**` a
 * pattern matches files only: the files in a matching directory match themselves and would be scanned twice.
 */
export async function* expandGlob(pattern: string): AsyncGenerator<string> {
  const parts = pattern.split('/').filter((part) => part !== '')
  yield* expand(pattern.startsWith('/') ? '/' : '', parts, false)
}

async function* expand(base: string, [part, ...rest]: string[], isDeep: boolean): AsyncGenerator<string> {
  if (part === undefined) {
    yield base
  } else if (part === '**') {
    yield* rest.length === 0 ? [base === '' ? '.' : base] : expandDeep(base, rest)
  } else if (!isGlob(part)) {
    const path = base + part
    if (rest.length > 0) yield* expand(`${path}/`, rest, isDeep)
    else if ((await lstat(path).catch(() => undefined)) !== undefined) yield path
  } else {
    const matches = toMatcher(part)
    for await (const { name, isDirectory, isLink } of list(base)) {
      if (!matches(name)) continue
      if (rest.length > 0 && (isDirectory || isLink)) yield* expand(`${base + name}/`, rest, isDeep)
      else if (rest.length === 0 && !(isDeep && isDirectory)) yield base + name
    }
  }
}

async function* expandDeep(base: string, rest: string[]): AsyncGenerator<string> {
  yield* expand(base, rest, true)
  for await (const { name, isDirectory } of list(base)) {
    if (isDirectory && !name.startsWith('.')) yield* expandDeep(`${base + name}/`, rest)
  }
}

/** Lists a directory. An unreadable directory is empty, because nothing in it is known to match. */
async function* list(base: string) {
  const dir = await opendir(base === '' ? '.' : base).catch(() => undefined)
  if (dir === undefined) return
  for await (const entry of dir) {
    yield { name: entry.name, isDirectory: entry.isDirectory(), isLink: entry.isSymbolicLink() }
  }
}

export function toMatcher(part: string): (name: string) => boolean {
  const source = part.replace(/\*+|\?|\[([!^]?)(\]?[^\]]*)\]|[^*?[]+|\[/g, (piece, negation?: string, set?: string) => {
    if (piece.startsWith('*')) return '[^/]*'
    if (piece === '?') return '[^/]'
    if (set !== undefined) return `[${negation === '' ? '' : '^'}${set.replace(/[\\[\]^]/g, '\\$&')}]`
    return piece.replace(/[\\^$.|+(){}[\]/-]/g, '\\$&')
  })
  const expression = new RegExp(`^${source}$`, 's')
  return (name) => expression.test(name) && (part.startsWith('.') || !name.startsWith('.'))
}
