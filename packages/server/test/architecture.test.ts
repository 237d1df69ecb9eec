import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  checkArchitecture,
  packageArrows,
  readSourceFiles,
  type SourceFile,
  serverArrows,
} from './support/architecture.ts'

const repository = new URL('../../../', import.meta.url)
const readText = (path: string) => readFileSync(new URL(path, repository), 'utf8')
const document = readText('docs/architecture.md')

for (const name of Object.keys(packageArrows)) {
  test(`imports of packages/${name} follow the arrows, without cycles, in files of at most 300 lines`, () => {
    assert.deepEqual(checkArchitecture(name, readSourceFiles(name)), [])
  })
}

/** Files that may read the clock of the machine, for times that no other node reads or decides by. */
const readsMachineClock = [
  'commands/doctor.ts',
  'compose/malware.ts',
  'compose/shared-signatures.ts',
  'compose/sources/update-source.ts',
  'compose/system-status.ts',
  'database/watch-database.ts',
  'engines/clamav/freshclam.ts',
  'runtime/clock.ts',
  'runtime/logger.ts',
]

test('only listed files of the server read the clock of the machine: all others go by that of the database', () => {
  const found = readSourceFiles('server')
    .map(({ path }) => path)
    .filter((path) => {
      return /\bnew Date\(\)|\bDate\.now\b|\bsystemClock\b/.test(readText(`packages/server/src/${path}`))
    })
  assert.deepEqual(found.toSorted(), readsMachineClock)
})

test('no file takes the path of a URL for the path of a file: in an URL, blanks and letters beyond ASCII are encoded', () => {
  const files = readdirSync(repository, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /\.(ts|cjs|js)$/.test(path) && !/(^|\/)(node_modules|dist|built)\//.test(path),
  )
  assert.ok(files.includes('packages/server/src/main.ts'))
  assert.deepEqual(
    files.filter((path) => /import\.meta\.url\)\.pathname/.test(readText(path))),
    [],
  )
})

test('commands start without the packages that only the service needs', () => {
  const files = readSourceFiles('server').map(({ path }) => path)
  const loaded = listLoaded(files.filter((path) => /^commands\/|^compose\/stores\.ts$/.test(path)))
  assert.ok(loaded.has('pg') && loaded.has('commander'))
  const ofService = ['@aws-sdk/client-s3', 'fastify', 'nodemailer', 'openid-client', 'prom-client']
  assert.deepEqual(
    ofService.filter((name) => loaded.has(name)),
    [],
  )
  // The index of the contract loads the library of schemas, which has 250 modules.
  assert.equal(listLoaded(['compose/stores.ts']).has('@assay/contract'), false)
})

/** The programs of confined processes, and the folders of sources that their jails let them read. */
const confinedPrograms: Record<string, string[]> = {
  'engines/nsfw/child/main.ts': ['domain', 'engines/child-process', 'engines/nsfw'],
  'engines/nsfw/models/child/main.ts': ['engines/child-process', 'engines/nsfw'],
  'engines/unpack/child/main.ts': ['domain', 'engines/child-process', 'engines/unpack'],
  'engines/yara/child/main.ts': ['engines/child-process', 'engines/yara'],
}

test('confined processes load only sources that they may read', () => {
  for (const [program, folders] of Object.entries(confinedPrograms)) {
    const sources = [...listLoaded([program])].filter((path) => path.endsWith('.ts'))
    assert.ok(sources.length > 1, program)
    const others = sources.filter((path) => !folders.some((folder) => path.startsWith(`${folder}/`)))
    assert.deepEqual(others, [], program)
  }
})

/** The sources that these sources load, and the packages: all but types and what `import()` loads when it is needed. */
function listLoaded(paths: string[]): Set<string> {
  const loaded = new Set<string>()
  const load = (path: string) => {
    if (loaded.has(path)) return
    loaded.add(path)
    if (!path.endsWith('.ts')) return
    const url = new URL(path, new URL('packages/server/src/', repository))
    const imports = readFileSync(url, 'utf8').matchAll(/(?:^|\n)(?:import|export)\b(?! type)[^'"]*?from '([^']+)'/g)
    for (const [, target = ''] of imports)
      load(target.startsWith('.') ? (new URL(target, url).href.split('/server/src/')[1] ?? '') : target)
  }
  for (const path of paths) load(path)
  return loaded
}

test('no process loads the fetch of Node only because a module imports node:http', () => {
  const found = ['server', 'client', 'cli'].flatMap((name) =>
    readSourceFiles(name)
      .map(({ path }) => `packages/${name}/src/${path}`)
      .filter((path) => /(?:^|\n)import (?!type )[^'"]*from 'node:http'/.test(readText(path))),
  )
  assert.deepEqual(found, [])
})

test('programs of threads are plain JavaScript: to remove types, Node would load a compiler into each thread', () => {
  const found = readSourceFiles('server').flatMap(({ path }) => {
    const text = readText(`packages/server/src/${path}`)
    return [...text.matchAll(/new Worker\((new URL\('([^']*)')?/g)].map(([, , program = path]) => program)
  })
  assert.deepEqual(found.toSorted(), ['./digest-thread.cjs', './hash-thread.cjs'])
})

test('docs/architecture.md has the arrows that this test enforces', () => {
  const toRows = (arrows: Record<string, string[]>) =>
    Object.entries(arrows).map(([from, to]) => [from, [...to].sort()] as const)
  assert.deepEqual(readTable('server-arrows'), toRows(serverArrows))
  assert.deepEqual(readTable('package-arrows'), toRows(packageArrows))
})

test('docs/architecture.md lists the folders that exist', () => {
  const listed = [...readSection('folders').matchAll(/^\| `([^`]+)`/gm)].map(([, folder = '']) => folder)
  assert.deepEqual(listed.toSorted(), listFolders().toSorted())
})

test('CONTRIBUTING.md lists the folders of the tests of the server and over HTTP', () => {
  const folders = ['packages/server/test/', 'acceptance/'].flatMap((path) =>
    listFoldersIn(path, ['node_modules', 'support']),
  )
  const document = readText('CONTRIBUTING.md')
  assert.deepEqual(
    folders.filter((folder) => !document.includes(`\`${folder.slice(0, -1)}\``)),
    [],
  )
})

test('every source file that a document names exists', () => {
  const files = listRepositoryFiles()
  const documents = files.filter((path) => path.endsWith('.md') && path !== 'CHANGELOG.md')
  assert.ok(documents.includes('docs/architecture.md') && documents.includes('CONTRIBUTING.md'))
  const missing = documents.flatMap((path) => findMissingFiles(readText(path), files).map((name) => `${path}: ${name}`))
  assert.deepEqual(missing, [])
})

test('a document that names a file that is gone is found', () => {
  const text = [
    'Run `node scripts/run.ts --all`, see `run.ts` and `gone/run.ts`. `un.ts` is gone too.',
    'Add `<name>-store.ts`, `NNNN-what.sql` and `assay-*.yar`, and load `own.yar`:',
    '```sh\nassay signatures add own.yar\n```',
  ]
  assert.deepEqual(findMissingFiles(text.join('\n'), ['scripts/run.ts']), ['gone/run.ts', 'un.ts'])
})

/** Paths that git tracks, or would track after `git add`. */
function listRepositoryFiles(): string[] {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const paths = execFileSync('git', list, { cwd: repository, encoding: 'utf8' }).split('\0')
  return paths.filter((path) => path && existsSync(new URL(path, repository)))
}

/**
 * Names of source files, in backticks, that are not the end of a path. Placeholders and extensions alone are no
 * names, and a name without a folder that is also in a code block of the document belongs to an example.
 */
function findMissingFiles(text: string, files: string[]): string[] {
  const toWords = (code: string) => code.split(/[\s'"(),;]+/)
  const block = /^ *```[\s\S]*?^ *```/gm
  const ofExamples = new Set([...text.matchAll(block)].flatMap(([code]) => toWords(code)))
  const words = [...text.replace(block, '').matchAll(/`([^`]+)`/g)].flatMap(([, code = '']) => toWords(code))
  return words
    .filter((word) => /[^.]\.(tsx?|cjs|sql|yar|ldb|sh)$/.test(word) && !/[<*…]|NNNN/.test(word))
    .filter((word) => word.includes('/') || !ofExamples.has(word))
    .filter((word) => !files.some((path) => `/${path}`.endsWith(`/${word}`)))
}

/** Every top-level folder, every package, and every folder below the server's `src`. */
function listFolders(): string[] {
  const source = 'packages/server/src/'
  return [
    ...listFoldersIn('./', ['node_modules', 'packages', 'data', 'dist']).map((folder) => folder.slice(2)),
    ...listFoldersIn('packages/'),
    ...listFoldersIn(source),
    ...listFoldersIn(source).flatMap((folder) => listFoldersIn(folder)),
  ]
}

function listFoldersIn(path: string, skip: string[] = []): string[] {
  return readdirSync(new URL(path, repository), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && !skip.includes(entry.name))
    .map((entry) => `${path}${entry.name}/`)
}

/** Rows of a table whose first cell names an importer and whose second lists, in backticks, what it may import. */
function readTable(marker: string): (readonly [string, string[]])[] {
  const rows = readSection(marker).split('\n').slice(2).filter(Boolean)
  return rows.map((row) => {
    const [, from = '', to = ''] = row.split('|')
    const toNames = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
    return [toNames(from)[0] ?? '', toNames(to).sort()] as const
  })
}

function readSection(marker: string): string {
  const found = new RegExp(`<!-- ${marker} -->\\n+([\\s\\S]*?)\\n+<!-- /${marker} -->`).exec(document)?.[1]
  assert.ok(found, `docs/architecture.md has no section between <!-- ${marker} --> and <!-- /${marker} -->`)
  return found
}

const imports = (path: string, ...targets: string[]): SourceFile => ({ path, lines: 10, imports: targets })

test('a forbidden import is found', () => {
  const found = checkArchitecture('server', [
    imports('domain/scans/scan.ts', 'database/scan-store.ts'),
    imports('database/scan-store.ts'),
  ])
  assert.deepEqual(found, ['domain/scans/scan.ts imports database/scan-store.ts: domain may import only contract'])
})

test('a forbidden import of a package is found', () => {
  assert.deepEqual(checkArchitecture('client', [imports('client.ts', '@assay/contract')]), [
    'client/client.ts imports @assay/contract: client may import only nothing of ours',
  ])
})

test('a cycle is found', () => {
  const found = checkArchitecture('cli', [
    imports('a.ts', 'b.ts'),
    imports('b.ts', 'commands/c.ts'),
    imports('commands/c.ts', 'a.ts'),
  ])
  assert.deepEqual(found, ['cli has a cycle: a.ts -> b.ts -> commands/c.ts -> a.ts'])
})

test('a file over 300 lines is found', () => {
  assert.deepEqual(checkArchitecture('console', [{ path: 'main.tsx', lines: 301, imports: [] }]), [
    'console/main.tsx has 301 lines',
  ])
})

test('SQL outside the database folder is found', () => {
  assert.deepEqual(checkArchitecture('server', [imports('http/server.ts', 'pg')]), [
    'http/server.ts imports pg: only database speaks to PostgreSQL',
  ])
})
