import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../../../acceptance/support/free-port.ts'
import { chooseUnprivileged } from '../../src/runtime/process.ts'

const program = '/usr/sbin/pgbouncer'

export const hasPgbouncer = () => existsSync(program)

/** Debian's pgbouncer with its own settings but for the mode, in front of the server of that address. */
export async function openPgbouncer(url: string, mode: 'session' | 'transaction') {
  const dir = mkdtempSync(join(tmpdir(), 'assay-pgbouncer-'))
  const server = new URL(url.replace('@/', '@socket/'))
  const host = server.searchParams.get('host') ?? server.hostname
  const user = chooseUnprivileged('pooler', ['postgres', 'node', 'nobody'], host.startsWith('/') ? [host] : [])
  if (user.owner !== undefined) chownSync(dir, user.owner.uid, user.owner.gid)
  const port = await findFreePort()
  const password = server.password === '' ? '' : `password='${decodeURIComponent(server.password)}'`
  const file = join(dir, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
* = host=${host} port=${server.port || 5432} user=${server.username} ${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`,
  )
  const run = user.wrap(program, ['-q', file])
  const child = spawn(run.command, run.args, { ...run, stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  return {
    toUrl: (database: string) => `postgres://${server.username}@127.0.0.1:${port}/${database}`,
    async close() {
      child.kill('SIGTERM')
      await ended
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
