import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { OperatorMistake } from '../domain/problem.ts'
import { addCommand, newCommand, print } from './terminal.ts'

/** Directory of this installation, which the unit names in the place of /opt/assay. */
const home = fileURLToPath(new URL('../../../../', import.meta.url)).replace(/\/$/, '')
const unitFile = 'etc/systemd/system/assay.service'
const userFile = 'etc/sysusers.d/assay.conf'
const settingsFile = 'etc/assay/assay.env'
const firstSettings = `# Settings of Assay, one NAME=value in each line. ${home}/docs/settings.md lists them.
# Run "systemctl restart assay" after a change.
`

type InstallOptions = { root: string; start: boolean }

export function makeServiceCommand(): Command {
  const service = newCommand('service', 'run this installation as a service of systemd')
  addCommand(service, 'install', 'write and enable the systemd unit, and start the service')
    .option('--no-start', 'start the service at the next boot, not now')
    .option('--root <directory>', 'install into this root of another system, which is not started', '/')
    .action((options: InstallOptions, command: Command) => {
      checkLocation()
      checkSystem(options.root)
      writeFiles(options.root)
      const isRunning = activate(options)
      const lines = [
        `The service assay is ${isRunning ? 'running' : 'enabled'}.`,
        `Settings: /${settingsFile}. Data: /var/lib/assay. Log: journalctl --unit assay`,
      ]
      print(command, { unit: `/${unitFile}`, settings: `/${settingsFile}`, running: isRunning }, lines.join('\n'))
    })
  addCommand(service, 'uninstall', 'stop the service and remove the systemd unit; settings and data stay')
    .option('--root <directory>', 'remove it from this root of another system', '/')
    .action(({ root }: { root: string }, command: Command) => {
      checkSystem(root)
      const isLive = root === '/'
      const systemctl = isLive ? ['disable', '--now', 'assay'] : [`--root=${root}`, 'disable', 'assay']
      if (existsSync(join(root, unitFile))) run('systemctl', ...systemctl)
      for (const file of [unitFile, userFile]) rmSync(join(root, file), { force: true })
      if (isLive) run('systemctl', 'daemon-reload')
      print(
        command,
        { removed: `/${unitFile}` },
        'The service assay is removed. /etc/assay and /var/lib/assay are left.',
      )
    })
  return service
}

/** The unit hides home directories, and its user is neither the owner of the files nor in the group. */
function checkLocation() {
  const hidden = ['/home/', '/root/', '/run/user/', '/tmp/', '/var/tmp/'].find((dir) => `${home}/`.startsWith(dir))
  const closed = listParents(home).find((dir) => (statSync(dir).mode & 0o005) !== 0o005)
  if (hidden === undefined && closed === undefined) return
  const reason = hidden === undefined ? `other users cannot read ${closed}` : `the service cannot see ${hidden}`
  throw new OperatorMistake(`Move ${home} to /opt/assay, or another directory that all users can read: ${reason}.`)
}

function listParents(dir: string): string[] {
  return dir === '/' ? [] : [dir, ...listParents(dirname(dir))]
}

function checkSystem(root: string) {
  if (root === '/' && process.getuid?.() !== 0) throw new OperatorMistake('Only root may do this: use sudo.')
  const isThere = spawnSync('systemctl', ['--version'], { stdio: 'ignore' }).status === 0
  const isBooted = root !== '/' || existsSync('/run/systemd/system')
  if (isThere && isBooted) return
  throw new OperatorMistake(
    `This system does not run systemd. Let its service manager run ${home}/assay serve as a user of its own.`,
  )
}

function writeFiles(root: string) {
  const read = (name: string) =>
    readFileSync(join(home, 'packaging/systemd', name), 'utf8').replaceAll('/opt/assay', home)
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text, { mode: 0o644 })
  }
  write(unitFile, read('assay.service'))
  write(userFile, read('assay.sysusers'))
  if (!existsSync(join(root, settingsFile))) write(settingsFile, firstSettings)
}

/** Creates the user and enables the unit; returns whether the service runs. */
function activate({ root, start }: InstallOptions): boolean {
  if (root !== '/') {
    run('systemctl', `--root=${root}`, 'enable', 'assay')
    return false
  }
  run('systemd-sysusers', `/${userFile}`)
  run('systemctl', 'daemon-reload')
  run('systemctl', 'enable', 'assay')
  // An upgrade replaces the files of a running service, which must start again.
  if (start) run('systemctl', 'restart', 'assay')
  return start
}

function run(program: string, ...args: string[]) {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] })
  if (status === 0) return
  const reason = error?.message ?? stderr.trim()
  throw new OperatorMistake(`${[program, ...args].join(' ')} failed: ${reason} See journalctl --unit assay.`)
}
