import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startService } from '../acceptance/support/start-service.ts'
import { openEmbedded } from '../packages/server/src/database/embedded/open-embedded.ts'
import { newClosers } from '../packages/server/src/runtime/closers.ts'
import { makeLogger } from '../packages/server/src/runtime/logger.ts'
import { openTestOrigin, testNetwork } from './test-origin.ts'
import { openTestPostgres } from './test-postgres.ts'
import { lacksTestS3, openTestS3 } from './test-s3.ts'

/**
 * The suite twice: on the database that Assay brings, and on a PostgreSQL of the operator's; what asks no database runs
 * once. Arguments are test files, for a quick look at some of them; `--embedded` or `--external` picks one of the runs.
 */
const args = process.argv.slice(2)
const files = args.filter((arg) => !arg.startsWith('--'))
const all = ['packages/*/test/**/*.test.ts', 'acceptance/**/*.test.ts']
const asksDatabase = [
  'packages/server/test/{database,http,remote-scans,test-mode,webhooks,workers}/*.test.ts',
  'acceptance/{jobs,operations,test-mode}/*.test.ts',
]

/** Hundreds of processes load the same modules: they are compiled once. */
const compiled = new URL('../node_modules/.cache/tests', import.meta.url).pathname

/** Of the service that the tests share. */
const settings = { ASSAY_OUTBOUND_ALLOW: testNetwork, ASSAY_ADMIN_TOKEN: randomBytes(24).toString('hex') }

// In a process of its own: vite would have the tests, and what they install, think of production.
const built = spawnSync(process.execPath, [new URL('build-console.ts', import.meta.url).pathname], { stdio: 'inherit' })
let failed = built.status !== 0
if (!args.includes('--external')) failed = !(await runOnEmbedded()) || failed
if (!args.includes('--embedded')) failed = !(await runOnExternal()) || failed
process.exit(failed ? 1 : 0)

async function runOnEmbedded(): Promise<boolean> {
  process.stdout.write('\n# on the embedded PostgreSQL\n')
  const closers = newClosers()
  try {
    const dataDir = mkdtempSync(join(tmpdir(), 'assay-test-'))
    closers.add(() => rmSync(dataDir, { recursive: true, force: true }))
    const log = makeLogger({ level: 'warn', region: 'test' })
    const database = await openEmbedded({ dataDir, as: 'guest', log })
    closers.add(database.close)
    const service = await startService(settings)
    closers.add(() => service.stop())
    const s3 = wantsS3() ? await openTestS3() : undefined
    closers.add(async () => s3?.close())
    return await runTests(all, {
      ASSAY_TEST_DATABASE_URL: database.url,
      ASSAY_TEST_SERVICE: service.handle,
      ...(s3 === undefined ? {} : { ASSAY_TEST_S3: s3.handle }),
    })
  } finally {
    await closers.closeAll()
  }
}

async function runOnExternal(): Promise<boolean> {
  const closers = newClosers()
  try {
    const postgres = await openTestPostgres()
    closers.add(postgres.close)
    process.stdout.write(`\n# on an external PostgreSQL ${postgres.version}\n`)
    const service = await startService({ ...settings, ASSAY_DATABASE_URL: postgres.url })
    closers.add(() => service.stop())
    return await runTests(asksDatabase, {
      ASSAY_TEST_DATABASE_URL: postgres.url,
      ASSAY_TEST_SERVICE: service.handle,
      ASSAY_TEST_EXTERNAL: '1',
    })
  } finally {
    await closers.closeAll()
  }
}

/** Once is enough: what is tested there has nothing to do with the database. */
function wantsS3(): boolean {
  return (files.length === 0 || files.some((file) => file.includes('s3'))) && lacksTestS3() === false
}

/**
 * ClamAV's own scanner and Debian's samples for it, to compare our verdicts with, clients for the listeners, a pooler, and what
 * the guides use. By now the service has installed ClamAV itself where it may; where this may not or cannot, the tests that
 * want them are skipped.
 */
function installSamples() {
  const wanted = ['bin/clamscan', 'share/clamav-testfiles', 'bin/clamdscan', 'bin/c-icap-client', 'sbin/pgbouncer']
  const isThere = [...wanted, 'bin/curl', 'bin/python3'].every((path) => existsSync(`/usr/${path}`))
  if (isThere || process.getuid?.() !== 0) return
  const packages = ['clamav', 'clamav-testfiles', 'clamdscan', 'c-icap', 'pgbouncer', 'curl', 'python3']
  const options = ['install', '-y', '-q', '--no-install-recommends', ...packages]
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  spawnSync('/usr/bin/apt-get', options, { stdio: 'ignore', timeout: 180_000, env })
}

async function runTests(suite: string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  installSamples()
  const origin = await openTestOrigin()
  const chosen = files.length > 0 ? files : suite
  const options = ['--test', '--test-concurrency=2', '--test-timeout=120000', '--test-reporter=spec']
  const child = spawn(process.execPath, [...options, ...chosen], {
    stdio: 'inherit',
    env: { ...process.env, ...env, ASSAY_TEST_ORIGIN: origin.url, NODE_COMPILE_CACHE: compiled },
  })
  const code = await new Promise((resolve) => child.once('exit', resolve))
  origin.close()
  return code === 0
}
