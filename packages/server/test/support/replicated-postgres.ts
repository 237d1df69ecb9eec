import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { dataRoot } from '../../../../acceptance/support/data-root.ts'
import { findFreePort } from '../../../../acceptance/support/free-port.ts'
import { findChildren } from '../../../../acceptance/support/processes.ts'
import { findServer } from '../../../../scripts/test-postgres.ts'
import { chooseUnprivileged } from '../../src/runtime/process.ts'
import { makeAuthority } from './certificates.ts'

/** The role `tester` needs no password; the role `certified` needs TLS and a client certificate. */
const rules = `
local all admin trust
hostssl all certified 127.0.0.1/32 cert
host all admin,tester 127.0.0.1/32 trust
host replication admin 127.0.0.1/32 trust
`

/** A primary, and a standby that streams from it. */
export async function openReplicatedPostgres() {
  const dir = mkdtempSync(join(dataRoot, 'assay-replicated-'))
  const { initdb, postgres, env } = findServer(dir)
  const user = chooseUnprivileged('database', ['postgres', 'node', 'nobody'], [dirname(postgres)])
  if (user.owner !== undefined) chownSync(dir, user.owner.uid, user.owner.gid)
  /** Runs a program as the owner of the files. */
  const run = (command: string, args: string[]) => {
    const wrapped = user.wrap(command, args)
    execFileSync(wrapped.command, wrapped.args, {
      ...wrapped,
      env: { ...process.env, ...env },
      cwd: dir,
      stdio: 'ignore',
    })
  }
  const authority = makeAuthority(dir)
  const server = authority.sign('server', 'IP:127.0.0.1')
  if (user.owner !== undefined) chownSync(server.key, user.owner.uid, user.owner.gid)
  const [one, two] = [join(dir, 'one'), join(dir, 'two')]
  const [port, standbyPort] = [await findFreePort(), await findFreePort()]
  run(initdb, ['-D', one, '-U', 'admin', '--auth=trust', '-E', 'UTF8', '--no-sync'])
  writeFileSync(join(one, 'pg_hba.conf'), rules)
  appendFileSync(
    join(one, 'postgresql.conf'),
    `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
ssl = on
ssl_cert_file = '${server.cert}'
ssl_key_file = '${server.key}'
ssl_ca_file = '${authority.ca}'
shared_buffers = '8MB'
fsync = off
`,
  )
  run('cp', ['-r', one, two])
  run('touch', [join(two, 'standby.signal')])
  appendFileSync(join(two, 'postgresql.conf'), `primary_conninfo = 'host=127.0.0.1 port=${port} user=admin'\n`)

  const start = (data: string, listenPort: number) => {
    const { command, args, ...options } = user.wrap(postgres, ['-D', data, '-p', String(listenPort)])
    const child = spawn(command, args, { ...options, env, cwd: dir, stdio: 'ignore' })
    return { child, ended: new Promise((resolve) => child.once('exit', resolve)) }
  }
  const servers = [start(one, port), start(two, standbyPort)]
  const admin = await connect(port, 'admin')
  await admin.query('create role tester login createdb; create role certified login')
  await admin.query('create database assay owner tester')
  await admin.end()
  // The standby accepts the role once it has replayed it.
  await (await connect(standbyPort, 'tester', 'assay')).end()

  /** Stops or continues all processes of the first server, which answers nothing meanwhile. */
  function signalFirst(signal: 'SIGSTOP' | 'SIGCONT') {
    const postmaster = Number(readFileSync(join(one, 'postmaster.pid'), 'utf8').split('\n')[0])
    for (const pid of [postmaster, ...findChildren(postmaster, '')]) process.kill(pid, signal)
  }

  return {
    port,
    standbyPort,
    authority,
    toUrl: (...ports: number[]) => `postgres://tester@${ports.map((each) => `127.0.0.1:${each}`).join(',')}/assay`,
    signalFirst,
    /** Changes a setting of the primary while it runs. */
    async setOnPrimary(name: string, value: string) {
      const client = await connect(port, 'admin')
      await client.query('set default_transaction_read_only = off')
      await client.query(`alter system set ${name} = ${value}`)
      await client.query('select pg_reload_conf()').finally(() => client.end())
    },
    /** Returns at once if the standby was promoted before. */
    async promoteStandby() {
      const client = await connect(standbyPort, 'admin')
      await client.query('select pg_promote() where pg_is_in_recovery()').finally(() => client.end())
    },
    async close() {
      try {
        signalFirst('SIGCONT')
      } catch (error) {
        // The first server has ended already, or ends just now.
        if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      }
      for (const { child } of servers) child.kill('SIGINT')
      await Promise.all(servers.map(({ ended }) => ended))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function connect(port: number, user: string, database = 'postgres'): Promise<pg.Client> {
  for (let left = 600; ; left--) {
    const client = new pg.Client({ host: '127.0.0.1', port, user, database })
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch (error) {
      if (left === 0) throw error
      await sleep(50)
    }
  }
}
