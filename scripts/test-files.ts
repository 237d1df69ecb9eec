import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const repository = new URL('../', import.meta.url).pathname

/** What a test file needs besides Node: a `unit` test needs neither a database nor a service. */
export type Kind = 'unit' | 'database' | 'service'

/** Files that open a database or a service. A test that imports one of them, directly or not, is no unit test. */
const openers: Record<string, Kind> = {
  'packages/server/test/support/test-database.ts': 'database',
  'acceptance/support/newcomer.ts': 'service',
  'acceptance/support/run-program.ts': 'service',
  'acceptance/support/shared-service.ts': 'service',
  'scripts/test-postgres.ts': 'service',
  'scripts/test-s3.ts': 'service',
}

/** Lists all test files, relative to the root of the repository. */
export const listTestFiles = (patterns = ['packages/*/test/**/*.test.ts', 'acceptance/**/*.test.ts']): string[] =>
  globSync(patterns, { cwd: repository, exclude: (path) => path.includes('node_modules') }).sort()

/** Decides from the imports of a test file what it needs, so that no list has to be kept up to date by hand. */
export function findKind(testFile: string): Kind {
  const needed = new Set([...listImports(testFile)].map((path) => openers[path] ?? 'unit'))
  return needed.has('service') ? 'service' : needed.has('database') ? 'database' : 'unit'
}

for (const path of Object.keys(openers)) if (!existsSync(join(repository, path))) throw new Error(`${path} is missing.`)

const importsByFile = new Map<string, string[]>()

function listImports(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  for (const target of readImports(path)) listImports(target, seen)
  return seen
}

function readImports(path: string): string[] {
  const known = importsByFile.get(path)
  if (known !== undefined) return known
  const text = readFileSync(join(repository, path), 'utf8')
  // Types are erased, so that they open nothing. A program named by `new URL` is one that the test starts.
  const found = text.matchAll(
    /(?:^|\n)(?:import|export)\b(?! type)[^'"]*?['"](\.[^'"]+)['"]|\bimport\(\s*'(\.[^']+)'|new URL\('(\.[^']+\.ts)'/g,
  )
  const targets = [...found]
    .map(([, fixed, dynamic, program]) => fixed ?? dynamic ?? program ?? '')
    .map((target) => relative(repository, join(repository, dirname(path), target)))
    .filter((target) => target.endsWith('.ts') && existsSync(join(repository, target)))
  importsByFile.set(path, targets)
  return targets
}
