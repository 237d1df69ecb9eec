import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { isStopped } from '../acceptance/support/processes.ts'
import { waitUntil } from '../acceptance/support/wait-until.ts'
import { findProgram } from '../packages/server/src/engines/clamav/installation.ts'

const program = '/usr/bin/c-icap'
const modules = ['x86_64', 'aarch64'].map((name) => `/usr/lib/${name}-linux-gnu/c_icap`).find(existsSync) ?? ''
const isRoot = process.getuid?.() === 0

/** The reason to skip tests with the real c-icap, or false. */
export const whyNoCIcap: string | false =
  (!existsSync(program) || !existsSync(join(modules, 'virus_scan.so'))) &&
  'c-icap is not installed: apt-get install c-icap libc-icap-mod-virus-scan'

/** c-icap with its service virus_scan on a clamd with Assay's test signatures. */
export async function startCIcap() {
  const dir = mkdtempSync(join(tmpdir(), 'assay-c-icap-'))
  for (const name of ['scratch', 'database']) mkdirSync(join(dir, name))
  chmodSync(dir, 0o755)
  cpSync(
    fileURLToPath(new URL('../packages/server/signatures/assay.ndb', import.meta.url)),
    join(dir, 'database', 'assay.ndb'),
  )
  writeFileSync(join(dir, 'clamd.conf'), toClamdConfig(dir))
  const port = await findFreePort()
  writeFileSync(join(dir, 'c-icap.conf'), toConfig(dir, port))
  const clamd = spawn(findProgram('clamd') ?? 'clamd', ['-c', join(dir, 'clamd.conf')], { stdio: 'ignore' })
  await waitUntil('the clamd of c-icap', () => existsSync(join(dir, 'clamd.sock')))
  let server = await startServer(dir, port)

  return {
    port,
    /** Signals c-icap, the process that starts others and those. */
    async signal(name: NodeJS.Signals) {
      const pid = server.pid as number
      process.kill(-pid, name)
      // Other threads go on until one of them has taken the signal.
      if (name === 'SIGSTOP') await waitUntil('c-icap to stop', () => [pid, ...listChildren(pid)].every(isStopped))
    },
    signalClamd: (name: NodeJS.Signals) => clamd.kill(name),
    /** Contents that c-icap has received and not answered. */
    countHeld: () => listOpenFiles(server.pid as number).filter((path) => path.startsWith(join(dir, 'scratch'))).length,
    /** Starts c-icap again after its end. */
    async restart() {
      server = await startServer(dir, port)
    },
    async stop() {
      await end(server, -(server.pid as number))
      await end(clamd)
      rmSync(dir, { recursive: true })
    },
  }
}

async function startServer(dir: string, port: number): Promise<ChildProcess> {
  const child = spawn(program, ['-N', '-f', join(dir, 'c-icap.conf')], { stdio: 'ignore', detached: true })
  let isOpen = false
  const tryPort = () => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      isOpen = true
      socket.destroy()
    })
    socket.on('error', () => {})
  }
  await waitUntil('c-icap', () => {
    if (!isOpen) tryPort()
    return isOpen
  })
  return child
}

const listChildren = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').map(Number)

/** Files that the children of a process have open, also those without a name. */
function listOpenFiles(pid: number): string[] {
  return listChildren(pid).flatMap((child) => {
    const fds = `/proc/${child}/fd`
    return readdirSync(fds).map((fd) => readlinkSync(join(fds, fd)))
  })
}

async function end(child: ChildProcess, pid = child.pid as number) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  process.kill(pid, 'SIGKILL')
  await ended
}

const toClamdConfig = (dir: string) => `Foreground yes
LocalSocket ${dir}/clamd.sock
DatabaseDirectory ${dir}/database
TemporaryDirectory ${dir}/scratch
${isRoot ? 'User root\n' : ''}`

/** `avscan` has no limit on the size, and answers only when its scan has ended; `limited` is as Debian ships it. */
const toConfig = (dir: string, port: number) => `PidFile ${dir}/c-icap.pid
CommandsSocket ${dir}/c-icap.ctl
Port 127.0.0.1:${port}
MaxKeepAliveRequests -1
StartServers 1
MaxServers 1
ThreadsPerChild 8
MinSpareThreads 1
MaxSpareThreads 8
${isRoot ? 'User root\nGroup root\n' : ''}TmpDir ${dir}/scratch
ServerLog ${dir}/server.log
AccessLog ${dir}/access.log
ModulesDir ${modules}
ServicesDir ${modules}
TemplateDir /usr/share/c_icap/templates/
LoadMagicFile /etc/c-icap/c-icap.magic
Module common clamd_mod.so
clamd_mod.ClamdSocket ${dir}/clamd.sock
Service antivirus_module virus_scan.so
ServiceAlias avscan virus_scan?allow204=on&sizelimit=off&mode=simple
ServiceAlias limited virus_scan
virus_scan.ScanFileTypes TEXT DATA EXECUTABLE ARCHIVE GIF JPEG MSOFFICE
virus_scan.SendPercentData 5
virus_scan.StartSendPercentDataAfter 2M
virus_scan.MaxObjectSize 5M
virus_scan.DefaultEngine clamd
`
