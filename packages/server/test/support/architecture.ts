import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

/** Paths are relative to packages/server/src; imports of packages keep their name. */
export type SourceFile = { path: string; lines: number; imports: string[] }

const root = new URL('../../src/', import.meta.url).pathname
const maxLines = 300

/** Who may use whom, of our own folders and the contract. Everybody may use what npm brings, except where told below. */
const mayUse: Record<string, string[]> = {
  'main.ts': ['commands', 'config', 'domain'],
  commands: ['commands', 'compose', 'config', 'domain', 'runtime'],
  compose: [
    ...['compose', 'config', 'domain', 'runtime', '@assay/contract'],
    ...['http', 'admin', 'listeners', 'workers', 'database', 'blobs', 'engines', 'outbound'],
  ],
  http: ['http', 'domain', 'runtime', '@assay/contract'],
  admin: ['admin', 'http', 'domain', 'runtime', '@assay/contract'],
  listeners: ['listeners', 'domain', 'runtime', '@assay/contract'],
  workers: ['workers', 'domain', 'runtime', '@assay/contract'],
  blobs: ['blobs', 'domain', 'runtime', '@assay/contract'],
  engines: ['engines', 'domain', 'runtime', '@assay/contract'],
  database: ['database', 'domain', 'runtime', '@assay/contract'],
  outbound: ['outbound', 'domain', 'runtime', '@assay/contract'],
  domain: ['domain', '@assay/contract'],
  config: ['config'],
  runtime: ['runtime'],
}

const drivers = ['pg', 'kysely', 'kysely/migration']

/** Everything that is wrong, in sentences. */
export function checkArchitecture(files: SourceFile[]): string[] {
  return [
    ...files.filter(({ lines }) => lines > maxLines).map(({ path, lines }) => `${path} has ${lines} lines`),
    ...files.flatMap(findForbidden),
    ...findCycles(files),
  ]
}

function findForbidden({ path, imports }: SourceFile): string[] {
  const from = toRoom(path)
  const allowed = mayUse[from]
  if (allowed === undefined) return [`${path} lies in a folder that the architecture does not know`]
  return imports.flatMap((target) => {
    if (drivers.includes(target) && from !== 'database')
      return [`${path} imports ${target}: only database speaks to PostgreSQL`]
    const to = toRoom(target)
    const isOurs = to in mayUse || to === '@assay/contract'
    return isOurs && !allowed.includes(to)
      ? [`${path} imports ${target}: ${from} may use only ${allowed.join(', ')}`]
      : []
  })
}

const toRoom = (path: string) => (path.startsWith('@') ? path : (path.split('/')[0] ?? path))

/** Depth first, once per file; a cycle is named from its first file in the alphabet. */
function findCycles(files: SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file.imports]))
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (path: string, trail: string[]) => {
    const start = trail.indexOf(path)
    if (start !== -1) {
      cycles.push(`cycle: ${[...trail.slice(start), path].join(' -> ')}`)
      return
    }
    if (done.has(path)) return
    for (const target of byPath.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const { path } of files) visit(path, [])
  return cycles
}

/** TypeScript 7 offers no compiler API; the formatter keeps imports regular enough to be read as text. */
export function readSourceFiles(): SourceFile[] {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  if (names.length < 30) throw new Error(`Only ${names.length} source files found below ${root}`)
  return names.sort().map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    const found = [...text.matchAll(/(?:^|\n)(?:import|export)\b[^'"]*?['"]([^'"]+)['"]|\bimport\(\s*'([^']+)'/g)]
    const targets = found.map(([, fixed, dynamic]) => fixed ?? dynamic ?? '')
    return { path, lines: text.split('\n').length - 1, imports: targets.map((target) => resolve(path, target)) }
  })
}

const resolve = (from: string, target: string) =>
  target.startsWith('.') ? relative('.', normalize(join(dirname(from), target))) : target
