import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../', import.meta.url))

/** The needs of a test file: an engine process, a database, a service, or none of them (`unit`). */
export type Kind = 'unit' | 'engine' | 'database' | 'service'

/** Opens a database on the server of the test run: the embedded one, or an external one. */
const testDatabase = 'packages/server/test/support/test-database.ts'

/** Files that start a part of that kind. A test file that imports one of them, directly or not, is no unit test. */
const openers: Record<Exclude<Kind, 'unit'>, string[]> = {
  engine: [
    'packages/server/src/engines/clamav/supervisor.ts',
    'packages/server/src/engines/nsfw/image-engine.ts',
    'packages/server/src/engines/nsfw/models/convert.ts',
    'packages/server/src/engines/nsfw/models/open-models.ts',
    'packages/server/src/engines/unpack/open-unpacker.ts',
    'packages/server/src/engines/yara/yara-engine.ts',
    'packages/server/test/signatures/clamscan.ts',
  ],
  database: [testDatabase, 'packages/server/test/support/charge-loop.ts'],
  service: [
    'acceptance/support/newcomer.ts',
    'acceptance/support/run-program.ts',
    'acceptance/support/shared-service.ts',
    'scripts/test-postgres.ts',
    'scripts/test-s3.ts',
  ],
}

/** Lists all test files, relative to the root of the repository. */
export const listTestFiles = (patterns = ['packages/*/test/**/*.test.ts', 'acceptance/**/*.test.ts']): string[] =>
  globSync(patterns, { cwd: repository, exclude: (path) => path.includes('node_modules') }).sort()

/** Decides from the imports of a test file what it needs, so that no list has to be kept up to date by hand. */
export function findKind(testFile: string): Kind {
  const imports = listImports(testFile)
  const needs = (kind: keyof typeof openers) => openers[kind].some((path) => imports.has(path))
  return needs('service') ? 'service' : needs('database') ? 'database' : needs('engine') ? 'engine' : 'unit'
}

/**
 * Tells whether a file tests statements, which must hold on every PostgreSQL: it runs with the embedded one and with an
 * external one. A file that starts engines besides is about them. Statements that it uses have tests without engines,
 * so that a second run, which costs several times as much, would show nothing new.
 */
export function testsStatements(testFile: string): boolean {
  const imports = listImports(testFile)
  return (
    findKind(testFile) === 'database' && imports.has(testDatabase) && !openers.engine.some((path) => imports.has(path))
  )
}

/** Most files of one kind that share a process. Each file of the kind `database` may open eight connections. */
const groupSizes: Partial<Record<Kind, number>> = { unit: 10, database: 4, service: 8 }

/** Files that only talk to the service that the test run shares, or run commands on it. */
const sharedParts = ['acceptance/support/shared-service.ts', 'acceptance/support/run-program.ts']
const starters = ['acceptance/support/start-service.ts', ...openers.engine, ...openers.service]

/** Tells whether a test file of the kind `service` can share a process: it starts no engine or service. */
function usesSharedServiceOnly(testFile: string): boolean {
  const imports = [...listImports(testFile, new Set(sharedParts))].filter((path) => !sharedParts.includes(path))
  return !imports.some((path) => starters.includes(path))
}

/**
 * A file that changes its process, or measures it, has one of its own: files of a group run one after the other, but
 * the first could leave a change behind for the second. Mocks of a test's context (`t.mock`) end with their test.
 */
const ownProcess = new RegExp(
  [
    /\bprocess\.(umask|chdir|exit|exitCode|on|once|emitWarning|cpuUsage|threadCpuUsage|memoryUsage|resourceUsage)\b/,
    /\bprocess\.(\w+ *=[^=>]|set\w*[ug]id\b|setgroups\b|initgroups\b)/,
    /\bprocess\.env\b[^\n;]*[^=!<>]=[^=>]|\bObject\.assign\(process\b|\bdelete process\b/,
    /\bglobalThis\b|worker_threads|\bgc\b|import \{[^}]*\bmock\b[^}]*\} from 'node:test'/,
  ]
    .map(({ source }) => source)
    .join('|'),
)

/**
 * Groups the files of a package that can share a process: starting one and loading the modules takes longer than the
 * tests of most files. A file of the kind `service` is grouped unless it starts one itself or is long. Keeps the order
 * of the groups' first files.
 */
export function groupFiles<File extends { file: string; kind: Kind; isLong?: boolean }>(
  files: File[],
): (File & { files: string[] })[] {
  const groups: (File & { files: string[] })[] = []
  const open = new Map<string, string[]>()
  for (const each of files) {
    const size = groupSizes[each.kind] ?? 1
    // Two packages may load one library in two ways at once, by import() and by require(), which Node refuses.
    const key = `${each.kind} ${/^(packages\/)?[^/]+/.exec(each.file)?.[0]}`
    const canShare = size > 1 && !needsOwnProcess(each)
    const group = canShare ? open.get(key) : undefined
    if (group !== undefined && group.length < size) {
      group.push(each.file)
      continue
    }
    const names = [each.file]
    groups.push({ ...each, files: names })
    if (canShare) open.set(key, names)
  }
  return groups
}

function needsOwnProcess({ file, kind, isLong }: { file: string; kind: Kind; isLong?: boolean }): boolean {
  if (kind === 'service' && (isLong || !usesSharedServiceOnly(file))) return true
  return ownProcess.test(readFileSync(join(repository, file), 'utf8'))
}

for (const path of Object.values(openers).flat())
  if (!existsSync(join(repository, path))) throw new Error(`${path} does not exist: correct \`openers\`.`)

const importsByFile = new Map<string, string[]>()

function listImports(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  for (const target of readImports(path)) listImports(target, seen)
  return seen
}

function readImports(path: string): string[] {
  const cached = importsByFile.get(path)
  if (cached !== undefined) return cached
  const text = readFileSync(join(repository, path), 'utf8')
  // Types are erased, so that they open nothing. A program named by `new URL` is one that the test starts.
  const matches = text.matchAll(
    /(?:^|\n)(?:import|export)\b(?! type)[^'"]*?['"](\.[^'"]+)['"]|\bimport\(\s*'(\.[^']+)'|new URL\('(\.[^']+\.ts)'/g,
  )
  const targets = [...matches]
    .map(([, fixed, dynamic, program]) => fixed ?? dynamic ?? program ?? '')
    .map((target) => relative(repository, join(repository, dirname(path), target)))
    .filter((target) => target.endsWith('.ts') && existsSync(join(repository, target)))
  importsByFile.set(path, targets)
  return targets
}
