import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { OperatorMistake } from '../domain/problem.ts'
import { addCommand, newCommand, print } from './terminal.ts'

/** Directory of this installation. */
const home = fileURLToPath(new URL('../../../../', import.meta.url)).replace(/\/$/, '')
const unitFile = 'etc/systemd/system/assay.service'
const userFile = 'etc/sysusers.d/assay.conf'
const settingsFile = 'etc/assay/assay.env'

type InstallOptions = { root: string; start: boolean }

export function makeServiceCommand(): Command {
  const service = newCommand('service', 'run this installation as a service of systemd')
  addCommand(service, 'install', 'write and enable the systemd unit, and start the service')
    .option('--no-start', 'start the service at the next boot, not now')
    .option('--root <directory>', 'install into this root of another system, which is not started', '/')
    .action((options: InstallOptions, command: Command) => {
      const root = findRoot(options.root)
      const place = findPlace(root)
      checkLocation(root, place)
      checkSystem(root)
      writeFiles(root, place)
      const isRunning = activate(root, options.start)
      const lines = [
        `The service assay is ${isRunning ? 'running' : 'enabled'}.`,
        `Settings: /${settingsFile}. Data: /var/lib/assay. Log: journalctl --unit assay`,
      ]
      if (!existsSync(join(root, place))) lines.push(`That system has no ${place} yet: unpack the archive there.`)
      print(command, { unit: `/${unitFile}`, settings: `/${settingsFile}`, running: isRunning }, lines.join('\n'))
    })
  addCommand(service, 'uninstall', 'stop the service and remove the systemd unit; settings and data stay')
    .option('--root <directory>', 'remove it from this root of another system', '/')
    .action((options: { root: string }, command: Command) => {
      const root = findRoot(options.root)
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

function findRoot(root: string): string {
  if (!existsSync(root)) throw new OperatorMistake(`There is no directory ${root}.`)
  return realpathSync(root)
}

/** The directory that this installation has on the system of the root, which the unit names instead of /opt/assay. */
function findPlace(root: string): string {
  return root !== '/' && home.startsWith(`${root}/`) ? home.slice(root.length) : home
}

/** The unit hides home directories, and its user is neither the owner of the files nor in the group. */
function checkLocation(root: string, place: string) {
  const reason = findFault(root, place)
  if (reason !== undefined)
    throw new OperatorMistake(`Move ${home} to /opt/assay, or another directory that all users can read: ${reason}.`)
}

function findFault(root: string, place: string): string | undefined {
  // systemd gives blanks, percent and dollar signs in a unit meanings of their own.
  if (!/^[\w./+-]+$/.test(place)) return 'the path may have letters, digits and . _ + - only'
  const hidden = ['/home/', '/root/', '/run/user/', '/tmp/', '/var/tmp/'].find((dir) => `${place}/`.startsWith(dir))
  if (hidden !== undefined) return `the service cannot see ${hidden}`
  const end = place === home ? '/' : root
  const closed = listParents(home, end).find((dir) => (statSync(dir).mode & 0o005) !== 0o005)
  return closed && `other users cannot read ${closed}`
}

/** A directory and those above it, up to `end`, which is left out. */
function listParents(dir: string, end: string): string[] {
  return dir === end ? [] : [dir, ...listParents(dirname(dir), end)]
}

function checkSystem(root: string) {
  if (root === '/' && process.getuid?.() !== 0) throw new OperatorMistake('Only root may do this: use sudo.')
  const isThere = spawnSync('systemctl', ['--version'], { stdio: 'ignore' }).status === 0
  const isBooted = root !== '/' || existsSync('/run/systemd/system')
  if (isThere && isBooted) return
  throw new OperatorMistake(
    `This system does not run systemd. Let its service manager run ${home}/packaging/assay serve as a user of its own.`,
  )
}

function writeFiles(root: string, place: string) {
  const read = (name: string) =>
    readFileSync(join(home, 'packaging/systemd', name), 'utf8').replaceAll('/opt/assay', place)
  const write = (file: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text, { mode })
  }
  write(unitFile, read('assay.service'))
  write(userFile, read('assay.sysusers'))
  const lines = [
    `# Settings of Assay, one NAME=value in each line. ${place}/docs/settings.md lists them.`,
    '# Run "systemctl restart assay" after a change.',
  ]
  // systemd reads the file as root, and operators put passwords into it.
  if (!existsSync(join(root, settingsFile))) write(settingsFile, `${lines.join('\n')}\n`, 0o600)
}

/** Creates the user and enables the unit; returns whether the service runs. */
function activate(root: string, start: boolean): boolean {
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
