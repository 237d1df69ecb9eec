import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Path is relative to the package's `src`; imports of packages keep their name. */
export type SourceFile = { path: string; lines: number; imports: string[] }

const packages = fileURLToPath(new URL('../../../', import.meta.url))
const maxLines = 300

/** Folders of the server, and which of our own folders and packages each may import. */
export const serverArrows: Record<string, string[]> = {
  'main.ts': ['commands', 'config', 'domain', 'runtime'],
  commands: ['compose', 'config', 'contract', 'domain', 'runtime'],
  compose: [
    'admin',
    'blobs',
    'config',
    'contract',
    'database',
    'domain',
    'engines',
    'http',
    'listeners',
    'outbound',
    'runtime',
    'workers',
  ],
  http: ['contract', 'domain', 'runtime'],
  listeners: ['contract', 'domain', 'runtime'],
  admin: ['contract', 'domain', 'http', 'runtime'],
  workers: ['contract', 'domain', 'runtime'],
  blobs: ['contract', 'domain', 'runtime'],
  database: ['contract', 'domain', 'runtime'],
  engines: ['contract', 'domain', 'runtime'],
  outbound: ['contract', 'domain', 'runtime'],
  domain: ['contract'],
  config: ['runtime'],
  runtime: [],
}

/** Packages, and which of our other packages each may import at run time or for types. */
export const packageArrows: Record<string, string[]> = {
  contract: [],
  client: [],
  server: ['contract'],
  cli: ['client'],
  console: ['client', 'contract'],
}

const drivers = ['pg', 'pg-connection-string']

/** Returns every violation as a sentence: arrows between packages and folders, cycles, files over 300 lines. */
export function checkArchitecture(name: string, files: SourceFile[]): string[] {
  return [
    ...files.filter(({ lines }) => lines > maxLines).map(({ path, lines }) => `${name}/${path} has ${lines} lines`),
    ...files.flatMap((file) => findForbiddenPackages(name, file)),
    ...(name === 'server' ? files.flatMap(findForbiddenFolders) : []),
    ...findCycles(files).map((cycle) => `${name} has a cycle: ${cycle}`),
  ]
}

function findForbiddenPackages(name: string, { path, imports }: SourceFile): string[] {
  const allowed = packageArrows[name] ?? []
  return imports.flatMap((target) => {
    const other = findPackage(target)
    return other === undefined || other === name || allowed.includes(other)
      ? []
      : [`${name}/${path} imports ${target}: ${name} may import only ${allowed.join(', ') || 'nothing of ours'}`]
  })
}

function findForbiddenFolders({ path, imports }: SourceFile): string[] {
  const from = toFolder(path)
  const allowed = serverArrows[from]
  if (allowed === undefined) return [`${path} lies in a folder that the architecture does not know`]
  return imports.flatMap((target) => {
    if (drivers.includes(target) && from !== 'database')
      return [`${path} imports ${target}: only database speaks to PostgreSQL`]
    const to = findPackage(target) ?? toFolder(target)
    const isOurs = to in serverArrows || to in packageArrows
    return !isOurs || to === from || allowed.includes(to)
      ? []
      : [`${path} imports ${target}: ${from} may import only ${allowed.join(', ') || 'nothing of ours'}`]
  })
}

const findPackage = (target: string) => /^@assay\/([^/]+)/.exec(target)?.[1]
const toFolder = (path: string) => path.split('/')[0] ?? path

/** Walks depth first, each file once, and names a cycle from its first file in the alphabet. */
function findCycles(files: SourceFile[]): string[] {
  const importsOf = new Map(files.map((file) => [file.path, file.imports]))
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (path: string, trail: string[]) => {
    const start = trail.indexOf(path)
    if (start !== -1) {
      cycles.push([...trail.slice(start), path].join(' -> '))
      return
    }
    if (done.has(path)) return
    for (const target of importsOf.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const { path } of files) visit(path, [])
  return cycles
}

/** Reads imports as text: TypeScript 7 offers no compiler API, and the formatter keeps imports regular enough. */
export function readSourceFiles(name: string): SourceFile[] {
  const root = join(packages, name, 'src')
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))
  if (names.length < 5) throw new Error(`Only ${names.length} source files found below ${root}`)
  return names.sort().map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    const found = [...text.matchAll(/(?:^|\n)(?:import|export)\b[^'"]*?\bfrom '([^']+)'|\bimport\(?\s*'([^']+)'/g)]
    const targets = found.map(([, fixed, dynamic]) => fixed ?? dynamic ?? '')
    return { path, lines: text.split('\n').length - 1, imports: targets.map((target) => toPath(path, target)) }
  })
}

const toPath = (from: string, target: string) =>
  target.startsWith('.') ? normalize(join(dirname(from), target)) : target
