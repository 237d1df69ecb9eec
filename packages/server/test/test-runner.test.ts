import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { codeCacheSuffix } from '../../../scripts/bundle-loader.ts'
import { writeBundle } from '../../../scripts/bundle-program.ts'
import { groupFiles } from '../../../scripts/test-files.ts'

const repository = fileURLToPath(new URL('../../../', import.meta.url))
const dir = mkdtempSync(join(tmpdir(), 'assay-test-runner-'))
after(() => rmSync(dir, { recursive: true }))

/** Without the context of this process, Node runs the files of a run within a run. */
const { NODE_TEST_CONTEXT: _, ...env } = process.env

/** Runs a program of the runner, and resolves to its exit code and output. */
function runProgram(args: string[], settings: NodeJS.ProcessEnv = {}) {
  return new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(process.execPath, args, { cwd: repository, env: { ...env, ...settings } }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, output: stdout + stderr }),
    )
  })
}

/** Writes a test file whose first test passes, and returns its path relative to the repository. */
function writeTest(name: string, text = ''): string {
  return writeFile(name, `import { after, test } from 'node:test'\ntest('passes', () => {})\n${text}`)
}

function writeFile(name: string, text: string): string {
  writeFileSync(join(dir, name), text)
  return relative(repository, join(dir, name))
}

/** Runs the groups of files that are its arguments. */
const program = join(dir, 'run-groups.mjs')
writeFileSync(
  program,
  `import { runPool } from '${repository}scripts/test-pool.ts'
  const groups = process.argv.slice(2).map((group) => group.split(','))
  const interrupt = new AbortController()
  process.once('SIGTERM', () => interrupt.abort())
  const runs = groups.map((files) => ({ files, env: Promise.resolve(process.env) }))
  const isOk = await runPool(runs, { verbose: false, signal: interrupt.signal })
  process.exitCode = isOk ? 0 : 1`,
)

/** Runs groups of files, and returns the last lines of the run: the files that failed, and the counts. */
async function runGroups(groups: string[][], settings?: NodeJS.ProcessEnv) {
  const { code, output } = await runProgram([program, ...groups.map((files) => files.join(','))], settings)
  const failed = [...output.matchAll(/^Failed: (.*)$/gm)].map(([, file]) => file).sort()
  return { code, failed, counts: output.match(/^\d+ passed, \d+ failed$/m)?.[0], output }
}

const passing = writeTest('passing.test.mjs')

test('files whose process exits early fail, and so do the files that then never ran', async () => {
  const exiting = [
    writeTest('exit-at-import.test.mjs', 'process.exit(0)'),
    writeTest('exit-in-test.test.mjs', "test('exits', () => process.exit(0))"),
    writeTest('exit-in-hook.test.mjs', 'after(() => process.exit(0))'),
  ]
  const others = exiting.map((file) => writeTest(`after-${file.split('/').at(-1)}`))
  const pairs = exiting.map((file, i) => [file, others[i] ?? ''])
  const { code, failed } = await runGroups([...pairs, ...exiting.map((file) => [file]), [passing]])
  assert.equal(code, 1)
  assert.deepEqual(failed, [...exiting, ...exiting, ...others].sort())
})

test('of a group, the failed file is named, and its failed test is counted once', async () => {
  const failing = writeTest('failing.test.mjs', "test('fails', () => { throw new Error('no') })")
  const broken = writeFile('broken.test.mjs', "throw new Error('cannot be imported')")
  const hanging = writeFile('hanging.test.mjs', 'await new Promise(() => {})')
  const groups = [
    [passing, failing],
    [passing, broken, hanging],
  ]
  const { code, failed, counts, output } = await runGroups(groups, { ASSAY_TEST_IMPORT_DEADLINE_MS: '500' })
  assert.equal(code, 1)
  assert.deepEqual(failed, [failing, broken, hanging].sort())
  assert.match(output, /A top-level await of .*hanging\.test\.mjs did not settle/)
  assert.equal(counts, '3 passed, 3 failed')
})

test('a run that is interrupted ends its test processes, starts no further file and fails', async () => {
  const endless = writeTest(
    'endless.test.mjs',
    "test('never ends', () => { process.kill(process.ppid, 'SIGTERM'); return new Promise((done) => setTimeout(done, 1e8)) })",
  )
  const later = Array.from({ length: 20 }, (_, i) => [writeTest(`later-${i}.test.mjs`)])
  const { code, failed, output } = await runGroups([[endless], ...later])
  assert.equal(code, 1)
  assert.ok(failed.includes(endless))
  assert.doesNotMatch(output, /later-19/)
})

test('an option that the runner does not know is refused', async () => {
  const { code, output } = await runProgram(['scripts/test.ts', '--help'])
  assert.equal(code, 2)
  assert.match(output, /^--help is unknown\. Usage: npm test -- /)
})

test('an error outside of the function of a test fails the test that caused it, also after an await', async () => {
  const causes = {
    timer: "setTimeout(() => { throw new Error('late') }, 1)",
    rejection: "void Promise.reject(new Error('late'))",
    chain: "void pause(1).then(() => { throw new Error('late') })",
    emitter: "execFile('true', () => { throw new Error('late') })",
  }
  const imports =
    "import { execFile } from 'node:child_process'\nimport { setTimeout as pause } from 'node:timers/promises'"
  const toFailing = ([name, cause]: [string, string]) =>
    writeTest(
      `late-${name}.test.mjs`,
      `${imports}\ntest('fails', async ({ signal }) => { await pause(1); ${cause}; await pause(9e4, 0, { signal }) })\ntest('ends', () => {})`,
    )
  const failing = Object.entries(causes).map(toFailing)
  const abandoned = writeTest(
    'abandoned.test.mjs',
    "test('ends', () => { setTimeout(() => { throw new Error() }, 100) })",
  )
  const { code, failed, counts } = await runGroups([...failing.map((file) => [file, passing]), [abandoned]])
  assert.equal(code, 1)
  assert.deepEqual(failed, [...failing, abandoned].sort())
  // Both tests of the abandoned file pass, and the file itself fails.
  assert.equal(counts, `${3 * failing.length + 2} passed, ${failing.length + 1} failed`)
})

test('tests and hooks belong to the suite of their file, also after a top-level await', async () => {
  writeFile('waiting.mjs', 'await new Promise(setImmediate)')
  const imports = "import './waiting.mjs'\nimport { afterEach } from 'node:test'\nawait new Promise(setImmediate)"
  const hook = "afterEach(() => { throw new Error('a hook of this file') })"
  const waiting = writeTest('waiting.test.mjs', `${imports}\n${hook}\ntest('is registered late', () => {})`)
  const alike = writeTest('alike.test.mjs', "import './waiting.mjs'")
  const { failed, counts } = await runGroups([[passing, alike, waiting, writeTest('later.test.mjs')]])
  assert.deepEqual(failed, [waiting])
  assert.equal(counts, '3 passed, 2 failed')
})

test('groups that pass are a success', async () => {
  const { code, failed, counts } = await runGroups([[passing, writeTest('second.test.mjs')], [passing]])
  assert.deepEqual({ code, failed, counts }, { code: 0, failed: [], counts: '3 passed, 0 failed' })
})

test('a directory for data that the caller has set stays', async () => {
  const memory = join(dir, 'memory')
  mkdirSync(memory)
  writeFileSync(join(memory, 'kept'), '')
  const unit = 'packages/server/test/runtime/metrics.test.ts'
  const { code, output } = await runProgram(['scripts/test.ts', '--unit', unit], { ASSAY_TEST_MEMORY_DIR: memory })
  assert.equal(code, 0, output)
  assert.ok(existsSync(join(memory, 'kept')))
})

test('a file that changes its process has one of its own, and the others of a package share one', () => {
  const changes = [
    "process.execPath = '/none'",
    "process.title='other'",
    "process.env.HOME = '/'",
    'process.setuid?.(1)',
    'process.setegid(1)',
    'process.setgroups([])',
  ]
  const readers = ["if (process.platform === 'linux') {}", 'process.getuid()', '(process.pid) => 1']
  const toFile = (text: string, at: number) => ({
    file: writeTest(`change-${at}.test.mjs`, text),
    kind: 'unit' as const,
  })
  const groups = groupFiles([...readers, ...changes].map(toFile))
  assert.deepEqual(
    groups.map(({ files }) => files.length),
    [readers.length, ...changes.map(() => 1)],
  )
})

test('files that only talk to the shared service share a process, unless one is long', () => {
  const support = join(relative(dir, repository), 'acceptance', 'support')
  const toFile = (name: string, text: string, isLong = false) => ({
    file: writeTest(`${name}.test.mjs`, `import '${support}/shared-service.ts'\n${text}`),
    kind: 'service' as const,
    isLong,
  })
  const groups = groupFiles([
    toFile('first', 'const read = async () => await 1'),
    toFile('starts', `import '${support}/start-service.ts'`),
    toFile('waits', 'const value = await Promise.resolve(1)'),
    toFile('long', '', true),
    toFile('second', `import '${support}/run-program.ts'`),
  ])
  assert.deepEqual(
    groups.map(({ files }) => files.length),
    [3, 1, 1],
  )
})

test('a bundle has its entries after all files that they import, and loses old files', () => {
  const bundle = join(dir, 'bundle')
  const entry = { name: 'main.js', content: 'main', isEntry: true }
  assert.throws(() => writeBundle(bundle, [entry, { name: 'missing/part.js', content: 'part', isEntry: false }]))
  assert.deepEqual(readdirSync(bundle), [])

  writeFileSync(join(bundle, 'old.js'), '')
  utimesSync(join(bundle, 'old.js'), 0, 0)
  // A name without a file, as that of a file which another run has just removed.
  symlinkSync('nothing', join(bundle, 'removed.js'))
  writeBundle(bundle, [entry, { name: 'part.js', content: 'part', isEntry: false }])
  assert.deepEqual(readdirSync(bundle).sort(), ['main.js', 'part.js', 'removed.js'])
})

test('a bundle of scripts writes its code cache when told to, and runs with, without or with a bad one', async () => {
  const scripts = join(dir, 'scripts')
  mkdirSync(scripts)
  copyFileSync(join(repository, 'scripts/bundle-loader.ts'), join(scripts, 'loader.ts'))
  const part = "exports.add = (a, b) => a + b + Number(__resolveUrl('node:fs') === 'node:fs')"
  writeFileSync(join(scripts, 'part.cjs'), part)
  const main = "exports.ended = Promise.resolve().then(() => console.log(require('./part.cjs').add(1, 1)))"
  writeFileSync(join(scripts, 'main.cjs'), main)
  writeFileSync(join(scripts, 'main.mjs'), "import { load } from './loader.ts'\nawait load('main.cjs').ended\n")
  const run = (settings: NodeJS.ProcessEnv = {}) => runProgram([join(scripts, 'main.mjs')], settings)
  const listCaches = () => readdirSync(scripts).filter((name) => name.endsWith(codeCacheSuffix))
  const expected = { code: 0, output: '3\n' }

  assert.deepEqual(await run(), expected)
  assert.deepEqual(listCaches(), [])
  assert.deepEqual(await run({ ASSAY_TEST_CODE_CACHE: 'write' }), expected)
  assert.deepEqual(listCaches().sort(), [`main.cjs${codeCacheSuffix}`, `part.cjs${codeCacheSuffix}`])
  // V8 keeps the constants of a function once it has compiled it, at its first call.
  assert(readFileSync(join(scripts, `part.cjs${codeCacheSuffix}`)).includes('node:fs'))
  assert.deepEqual(await run(), expected)
  for (const name of listCaches()) writeFileSync(join(scripts, name), 'broken')
  assert.deepEqual(await run(), expected)
})
