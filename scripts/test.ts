import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dataRoot } from '../acceptance/support/data-root.ts'
import { installPackages, installPackagesMeanwhile } from '../acceptance/support/install-packages.ts'
import { startService } from '../acceptance/support/start-service.ts'
import { openEmbedded } from '../packages/server/src/database/embedded/open-embedded.ts'
import { newClosers } from '../packages/server/src/runtime/closers.ts'
import { makeLogger } from '../packages/server/src/runtime/logger.ts'
import { bundleProgram } from './bundle-program.ts'
import { prepareDatabase } from './prepare-database.ts'
import { findKind, groupFiles, type Kind, listTestFiles, testsStatements } from './test-files.ts'
import { openTestOrigin, testNetwork } from './test-origin.ts'
import { runPool, type TestRun } from './test-pool.ts'
import { openTestPostgres } from './test-postgres.ts'
import { lacksTestS3, openTestS3 } from './test-s3.ts'
import { writeCodeCache } from './write-code-cache.ts'

/**
 * Runs the whole suite: every file once with the embedded PostgreSQL, and the files that depend on the database once
 * more with an external one. Arguments are test files or patterns; `--embedded` or `--external` runs them with one of
 * the two databases only. `--unit` runs the files that need no engine, database or service.
 */
const args = process.argv.slice(2)
const unknown = args.find((arg) => arg.startsWith('--') && !['--unit', '--embedded', '--external'].includes(arg))
if (unknown !== undefined) {
  process.stderr.write(`${unknown} is unknown. Usage: npm test -- [--unit | --embedded | --external] [FILE...]\n`)
  process.exit(2)
}
const patterns = args.filter((arg) => !arg.startsWith('--'))
const isUnit = args.includes('--unit')

/** Acceptance tests that depend on the database, besides the files that open one themselves. */
const usesDatabase = [
  'jobs/submit',
  'lifecycle/concurrency',
  'operations/authentication',
  'operations/reads',
  'operations/server-error',
  'operations/url-commands',
  'test-mode/keys',
].map((name) => `acceptance/${name}.test.ts`)

/** The samples of this file wait for languages that the run may have to install. */
const languagesFile = 'acceptance/documents/languages.test.ts'

/** The files that take longest, longest first. They start first, so that both cores stay busy until the end. */
const longest = [
  'acceptance/documents/operating',
  'acceptance/console/browser',
  'acceptance/malware/resilience',
  'acceptance/corpus/corpus',
  'acceptance/jobs/chaos',
  'acceptance/malware/verdicts',
  'acceptance/malware/hostile-archives',
  'acceptance/lifecycle/start',
  'acceptance/malware/signatures',
  'packages/server/test/engines/yara-failures',
  'acceptance/malware/degraded',
  'acceptance/malware/intake',
  'acceptance/jobs/s3',
  'acceptance/documents/readme',
  'acceptance/cluster/roles',
  'acceptance/jobs/takeover',
  'acceptance/jobs/submit',
  'acceptance/operations/uploads',
  'acceptance/documents/references',
  'packages/server/test/compose/malware-limits',
  'acceptance/operator/backup',
  'packages/server/test/nsfw/pixels-animation',
  'acceptance/jobs/webhooks',
  'acceptance/malware/secrecy',
  'acceptance/test-mode/alone',
  'acceptance/edge/tls',
  'acceptance/lifecycle/regions',
  'acceptance/nsfw/resilience',
  'packages/server/test/nsfw/engine',
  'packages/server/test/nsfw/engine-failures',
  'packages/server/test/clamav/open-own-clamd',
  'packages/server/test/nsfw/models',
  'packages/server/test/jail/hostile',
  'packages/server/test/lifecycle/rolling-restart',
  'packages/server/test/engines/yara-engine',
].map((name) => `${name}.test.ts`)

/** Hundreds of processes load the same modules: with this cache Node compiles each module once. */
const compileCache = fileURLToPath(new URL('../node_modules/.cache/tests', import.meta.url))
const baseEnv = { ...process.env, NODE_COMPILE_CACHE: compileCache }

/** Settings of the service that tests share. */
const settings = {
  ASSAY_OUTBOUND_ALLOW: testNetwork,
  ASSAY_ADMIN_TOKEN: randomBytes(24).toString('hex'),
  // Tests come from a network of their own by X-Forwarded-For, so that their wrong passwords delay no other test.
  ASSAY_TRUSTED_PROXIES: '127.0.0.1',
}

/** Far more than the databases of a run take: without that much, they stay on the disk. */
const minFreeBytes = 8 * 2 ** 30

if (!isUnit && process.env.ASSAY_TEST_MEMORY_DIR === undefined) startAgainWithMemoryDir()
const closers = newClosers()
// A directory that the caller or an outer run has set is theirs.
const memoryDir = process.env.ASSAY_TEST_MEMORY_DIR
if (memoryDir && process.env.ASSAY_TEST_MEMORY_OWNER === String(process.pid))
  closers.add(() => removeMemoryDir(memoryDir))
const interrupt = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort())
try {
  const runs = isUnit ? listUnitRuns() : await listAllRuns()
  const isOk = await runPool(runs, { verbose: patterns.length > 0, signal: interrupt.signal })
  process.exitCode = isOk ? 0 : 1
} finally {
  await closers.closeAll()
}
process.exit()

/**
 * Replaces this process by the same program, under the same process id, with a file system in memory for the databases
 * of the tests. No other process sees it, and it ends with the run. On a disk, creating and deleting the small files of
 * hundreds of databases can take a fifth of the processor time of a service's start. Returns where that is impossible.
 */
function startAgainWithMemoryDir() {
  if (process.getuid?.() !== 0 || freemem() < minFreeBytes) return
  if (spawnSync('unshare', ['--mount', 'true']).status !== 0) return
  const dir = mkdtempSync(join(tmpdir(), 'assay-memory-'))
  const mount = 'mount -t tmpfs -o mode=0755 assay "$ASSAY_TEST_MEMORY_DIR"'
  const script = `${mount} || { rmdir "$ASSAY_TEST_MEMORY_DIR"; ASSAY_TEST_MEMORY_DIR=; }; exec "$@"`
  const command = ['/usr/bin/env', 'unshare', '--mount', 'sh', '-c', script, 'sh', process.execPath]
  const env = { ...process.env, ASSAY_TEST_MEMORY_DIR: dir, ASSAY_TEST_MEMORY_OWNER: String(process.pid) }
  process.execve?.('/usr/bin/env', [...command, ...process.argv.slice(1)], env)
}

function removeMemoryDir(dir: string) {
  spawnSync('umount', ['--lazy', dir])
  rmSync(dir, { recursive: true, force: true })
}

/** Without the variables of the services, a unit test that needs one fails. */
function listUnitRuns(): TestRun[] {
  const units = listRequested().filter(({ kind }) => kind === 'unit')
  return toGroups(units).map(({ files }) => ({ files, env: Promise.resolve(baseEnv) }))
}

async function listAllRuns(): Promise<TestRun[]> {
  buildConsole()
  const bundles = await bundleProgram()
  process.env.ASSAY_TEST_BUNDLES = bundles
  const origin = await openTestOrigin()
  closers.add(origin.close)
  const env = { ...baseEnv, ASSAY_TEST_BUNDLES: bundles, ASSAY_TEST_ORIGIN: origin.url }
  const requested = listRequested()
  const isNamed = patterns.length > 0
  const runs: TestRun[] = []
  let installed = Promise.resolve(env)
  if (!args.includes('--external')) {
    const needsS3 = !isNamed || requested.some(({ file }) => file.includes('s3'))
    const embedded = openEmbeddedEnvironment(env, needsS3)
    // The service installs ClamAV on a fresh machine, and tests of all kinds use ClamAV.
    if (!hasPrograms()) installed = embedded.then(installPrograms).then(() => env)
    const byKind = { unit: installed, engine: installed, database: embedded, service: embedded }
    // The environment may install S3 first: languages hold the lock of apt for minutes.
    const languages = requested.some(({ file }) => file === languagesFile)
      ? embedded.then(() => installed.then(installLanguages)).then(() => embedded)
      : embedded
    const toEnv = (files: string[], kind: Kind) => (files.includes(languagesFile) ? languages : byKind[kind])
    runs.push(...toGroups(requested).map(({ files, kind }) => ({ files, env: toEnv(files, kind) })))
  }
  if (!args.includes('--embedded')) {
    const both = requested.filter(({ file }) => isNamed || testsStatements(file) || usesDatabase.includes(file))
    let opened: Promise<NodeJS.ProcessEnv> | undefined
    const external = () => {
      opened ??= installed.then(openExternalEnvironment)
      return opened
    }
    runs.push(...toGroups(both).map(({ files }) => ({ files, label: 'external PostgreSQL', env: external })))
  }
  return runs
}

/** Files that were named run alone, as a developer would run them. */
function toGroups(files: TestFile[]) {
  return patterns.length > 0 ? files.map((each) => ({ ...each, files: [each.file] })) : groupFiles(files)
}

type TestFile = { file: string; kind: Kind; isLong: boolean }

function listRequested(): TestFile[] {
  const files = listTestFiles(patterns.length > 0 ? patterns : undefined)
  if (files.length === 0) throw new Error(`No test file matches ${patterns.join(' ')}.`)
  for (const file of [...longest, ...usesDatabase])
    if (!existsSync(file)) throw new Error(`${file} does not exist: correct \`longest\` or \`usesDatabase\`.`)
  const toRank = (file: string) => (longest.includes(file) ? longest.indexOf(file) : longest.length)
  return files
    .sort((a, b) => toRank(a) - toRank(b))
    .map((file) => ({ file, kind: findKind(file), isLong: longest.includes(file) }))
}

async function openEmbeddedEnvironment(env: NodeJS.ProcessEnv, needsS3: boolean): Promise<NodeJS.ProcessEnv> {
  const prepared = await prepareDatabase()
  closers.add(prepared.close)
  process.env.ASSAY_TEST_PREPARED_DATABASE = prepared.dir
  const dataDir = mkdtempSync(join(dataRoot, 'assay-test-'))
  closers.add(() => rmSync(dataDir, { recursive: true, force: true }))
  const log = makeLogger({ level: 'warn', region: 'test' })
  const database = await openEmbedded({ dataDir, as: 'command', log })
  closers.add(database.close)
  const service = await startService(settings)
  closers.add(() => service.stop())
  // A run of single files starts few services, which would save less than this takes.
  if (patterns.length === 0 && env.ASSAY_TEST_BUNDLES !== undefined) await writeCodeCache(env.ASSAY_TEST_BUNDLES)
  const s3 = needsS3 && lacksTestS3() === false ? await openTestS3() : undefined
  closers.add(async () => s3?.close())
  return {
    ...env,
    ASSAY_TEST_PREPARED_DATABASE: prepared.dir,
    ASSAY_TEST_DATABASE_URL: database.url,
    ASSAY_TEST_SERVICE: service.handle,
    ...(s3 === undefined ? {} : { ASSAY_TEST_S3: s3.handle }),
  }
}

async function openExternalEnvironment(env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const postgres = await openTestPostgres()
  closers.add(postgres.close)
  const service = await startService({ ...settings, ASSAY_DATABASE_URL: postgres.url })
  closers.add(() => service.stop())
  return {
    ...env,
    ASSAY_TEST_DATABASE_URL: postgres.url,
    ASSAY_TEST_SERVICE: service.handle,
    ASSAY_TEST_EXTERNAL: '1',
  }
}

/**
 * Builds in a process of its own, because vite would set NODE_ENV to production for the tests and what they install.
 */
function buildConsole() {
  const program = fileURLToPath(new URL('build-console.ts', import.meta.url))
  const { status } = spawnSync(process.execPath, [program], { stdio: 'inherit' })
  if (status !== 0) throw new Error('The console could not be built.')
}

function hasPrograms(): boolean {
  const programs = [
    'c-icap-client',
    'clamdscan',
    'clamscan',
    'curl',
    'faketime',
    'minisign',
    'promtool',
    'python3',
    'zbarimg',
  ].map((name) => `bin/${name}`)
  const servers = ['clamd', 'haproxy', 'nginx', 'pgbouncer', 'squid'].map((name) => `sbin/${name}`)
  const modules = ['cryptography', 'requests'].map((name) => `lib/python3/dist-packages/${name}`)
  const others = ['share/c_icap/templates/virus_scan', 'share/clamav-testfiles', ...modules]
  return [...programs, ...servers, ...others].every((path) => existsSync(`/usr/${path}`))
}

/** Installs the languages of the samples, while other tests run. Samples of a language that is missing are skipped. */
async function installLanguages() {
  const isThere = ['go', 'java', 'mcs', 'php', 'ruby'].every((name) => existsSync(`/usr/bin/${name}`))
  if (isThere) return
  const mono = ['mono-mcs', 'mono-runtime', 'libmono-system-net-http4.0-cil']
  const packages = ['golang-go', 'php-cli', 'php-curl', 'ruby', 'default-jdk-headless', ...mono]
  const serialization = 'libmono-system-runtime-serialization4.0-cil'
  await installPackagesMeanwhile([...packages, serialization])
}

/**
 * Installs the programs that tests compare with or use as clients: ClamAV's own scanner and its samples, an ICAP
 * server, clients for the listeners, a connection pooler, proxies, wrong clocks, a reader of QR codes, the checker of
 * Prometheus, curl and Python. Without root the tests that use a missing program are skipped.
 */
function installPrograms() {
  const scanners = ['clamav', 'clamav-testfiles', 'clamdscan', 'c-icap', 'libc-icap-mod-virus-scan']
  installPackages([
    ...scanners,
    'pgbouncer',
    'nginx-light',
    'haproxy',
    'squid',
    'curl',
    'faketime',
    'minisign',
    'python3-cryptography',
    'python3-requests',
    'zbar-tools',
    'prometheus',
  ])
}
