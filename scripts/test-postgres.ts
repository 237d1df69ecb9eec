import { execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { dataRoot } from '../acceptance/support/data-root.ts'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { findBinaries, linkLibraries } from '../packages/server/src/database/embedded/layout.ts'
import { chooseUnprivileged } from '../packages/server/src/runtime/process.ts'

/**
 * A PostgreSQL as operators run it: over TCP, with a password and a role that may create databases but is no
 * superuser. PostgreSQL 15 of Debian, the oldest supported version, when it is installed; else the embedded one.
 */
export async function openTestPostgres(moreSettings: string[] = [], moreEnv: NodeJS.ProcessEnv = {}) {
  const dir = mkdtempSync(join(dataRoot, 'assay-test-postgres-'))
  const { initdb, postgres, env } = findServer(dir)
  const unprivileged = chooseUnprivileged('database', ['postgres', 'node', 'nobody'], [dirname(postgres)])
  if (unprivileged.owner !== undefined) chownSync(dir, unprivileged.owner.uid, unprivileged.owner.gid)
  const cluster = join(dir, 'cluster')
  const port = await findFreePort()

  const toUrl = (role: string) => `postgres://${role}:p4ss%20word@127.0.0.1:${port}/assay`

  makeCluster(cluster, (to) => {
    const options = ['-U', 'admin', '--auth-local=trust', '--auth-host=scram-sha-256', '-E', 'UTF8', '--no-sync']
    const init = unprivileged.wrap(initdb, ['-D', to, ...options])
    execFileSync(init.command, init.args, { ...init, env, cwd: dir, stdio: 'ignore' })
  })
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${dir}`,
    'max_connections=200',
    ...moreSettings,
  ]
  const run = unprivileged.wrap(postgres, [
    '-D',
    cluster,
    '-p',
    String(port),
    ...settings.flatMap((setting) => ['-c', setting]),
  ])
  const start = () => {
    const server = spawn(run.command, run.args, { ...run, env: { ...env, ...moreEnv }, cwd: dir, stdio: 'ignore' })
    const ended = new Promise((resolve) => server.once('exit', resolve))
    return {
      async stop(signal: NodeJS.Signals) {
        server.kill(signal)
        await ended
      },
    }
  }
  let server = start()

  const admin = await connect({ host: dir, port, user: 'admin', database: 'postgres' })
  await admin.query("create role tester login createdb password 'p4ss word'")
  await admin.query("alter role admin password 'p4ss word'")
  await admin.query('create database assay owner tester')
  const { rows } = await admin.query<{ server_version: string }>('show server_version')
  await admin.end()
  return {
    version: rows[0]?.server_version,
    url: toUrl('tester'),
    /** Address with the role of the superuser. */
    adminUrl: toUrl('admin'),
    dir,
    /** Hears every message that is sent on a channel from now on; `messages` grows. */
    async listen(channel: string) {
      const messages: string[] = []
      const client = await connect({ connectionString: toUrl('tester') })
      client.on('notification', ({ payload = '' }) => void messages.push(payload))
      await client.query(`listen ${channel}`)
      return { messages, close: () => client.end() }
    },
    /** Runs one statement with the role of the service. */
    async query(text: string, values: unknown[] = []): Promise<void> {
      const client = await connect({ connectionString: toUrl('tester') })
      await client.query(text, values).finally(() => client.end())
    },
    /** Restarts the server; operators use SIGINT. */
    async restart(signal: NodeJS.Signals) {
      await server.stop(signal)
      server = start()
      await (await connect({ host: dir, port, user: 'admin', database: 'postgres' })).end()
    },
    async close() {
      await server.stop('SIGINT')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/**
 * Creates the cluster with `init`, or copies the one that another test of this run has created: initdb takes more than
 * a second of processor time.
 */
function makeCluster(cluster: string, init: (to: string) => void) {
  const prepared = process.env.ASSAY_TEST_PREPARED_DATABASE
  const kept = prepared === undefined ? undefined : join(prepared, 'external')
  // Unlike `cpSync`, cp keeps the owner.
  const copy = (from: string, to: string) => execFileSync('cp', ['-a', '--reflink=auto', from, to])
  if (kept !== undefined && existsSync(kept)) return copy(kept, cluster)
  init(cluster)
  if (kept === undefined) return
  const part = `${kept}.${process.pid}`
  copy(cluster, part)
  try {
    renameSync(part, kept)
  } catch {
    // Another test has created it meanwhile.
    rmSync(part, { recursive: true })
  }
}

/** Debian's PostgreSQL 15 when it is installed, otherwise the embedded one, whose libraries are linked in `dir`. */
export function findServer(dir: string) {
  const debian = '/usr/lib/postgresql/15/bin'
  if (existsSync(join(debian, 'postgres'))) {
    return { initdb: join(debian, 'initdb'), postgres: join(debian, 'postgres'), env: { LC_ALL: 'C' } }
  }
  const binaries = findBinaries()
  const links = join(dir, 'lib')
  mkdirSync(links)
  linkLibraries(binaries, links)
  return { ...binaries, env: { LC_ALL: 'C', LD_LIBRARY_PATH: `${links}:${binaries.libraryDir}` } }
}

async function connect(options: pg.ClientConfig): Promise<pg.Client> {
  for (let left = 200; ; left--) {
    const client = new pg.Client(options)
    try {
      await client.connect()
      return client
    } catch (error) {
      if (left === 0) throw error
      await sleep(50)
    }
  }
}
