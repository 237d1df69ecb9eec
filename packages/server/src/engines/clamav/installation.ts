import { spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Logger } from '../../runtime/logger.ts'

/** Directories searched after PATH, because the PATH of ordinary users often has no sbin. */
const extraDirs = ['/usr/sbin', '/usr/local/sbin', '/usr/bin', '/usr/local/bin', '/opt/clamav/sbin', '/opt/clamav/bin']

/** The path of a program of ClamAV. */
export function findProgram(name: 'clamd' | 'freshclam'): string | undefined {
  const dirs = [...(process.env.PATH ?? '').split(delimiter).filter((dir) => dir !== ''), ...extraDirs]
  return dirs.map((dir) => join(dir, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** `ClamAV 1.4.6` */
export function readVersion(clamd: string): string {
  const { stdout } = spawnSync(clamd, ['--version'], { encoding: 'utf8', timeout: 10_000 })
  return (stdout ?? '').trim().split('/')[0] || 'ClamAV'
}

const packages = ['clamav-daemon', 'clamav-freshclam']
const installCommand = `apt-get install --no-install-recommends ${packages.join(' ')}`

/** Commands that install clamd and freshclam, by the names of distributions in /etc/os-release. */
const commands: [distribution: RegExp, command: string][] = [
  [/debian|ubuntu/, installCommand],
  [/fedora/, 'dnf install clamd clamav-freshclam'],
  [/rhel|centos/, 'dnf install epel-release && sudo dnf install clamd clamav-freshclam'],
  [/suse/, 'zypper install clamav'],
  [/arch/, 'pacman -S clamav'],
]

/** Names the command that installs ClamAV on the system that /etc/os-release describes. */
export function toInstallAdvice(osRelease: string): string {
  const find = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(osRelease)?.[1] ?? ''
  // A distribution that is like others names these after its own name, the closest first.
  const names = `${find('ID')} ${find('ID_LIKE')}`.replaceAll('"', '').split(' ')
  for (const name of names) {
    const [, command] = commands.find(([distribution]) => distribution.test(name)) ?? []
    if (command !== undefined) return `type sudo ${command}`
  }
  return 'install clamd and freshclam with the package manager of this system'
}

export const findInstallAdvice = (): string => toInstallAdvice(readOsRelease())
const install =
  `env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ${packages.join(' ')}`.split(' ')
const timeoutMs = 10 * 60_000

/** Installs ClamAV from the distribution where the service may; otherwise logs the command for the operator. */
export async function installClamAv(log: Logger): Promise<boolean> {
  if (!isDebian()) {
    log.warn(`ClamAV is not installed: ${findInstallAdvice()}, then start Assay again.`)
    return false
  }
  const prefix = findRootPrefix()
  if (prefix === undefined) {
    log.warn(
      `ClamAV is not installed, and only root may install it. Type: sudo ${installCommand}; then start Assay again.`,
    )
    return false
  }
  log.info(`ClamAV is not installed: installing ${packages.join(' and ')} from the distribution. This happens once.`)
  const report = (line: string) => log.info({ progress: line }, 'installing ClamAV')
  const update = [...prefix, 'apt-get', 'update', '-q']
  const fault = (await run(update, report)) ?? (await run([...prefix, ...install], report))
  if (fault === undefined) log.info('ClamAV is installed')
  else log.error(`ClamAV could not be installed: ${fault} Type: sudo ${installCommand}`)
  return fault === undefined
}

function isDebian(): boolean {
  if (!existsSync('/usr/bin/apt-get')) return false
  return /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(readOsRelease())
}

const readOsRelease = () => (existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '')

/** Empty for root; sudo where it asks for no password; else undefined. */
function findRootPrefix(): string[] | undefined {
  if (process.getuid?.() === 0) return []
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : undefined
}

const reportMs = 5000

/** Runs a command, and reports its latest line every few seconds. Returns the end of its output when it fails. */
function run([command = '', ...args]: string[], report: (line: string) => void): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: timeoutMs })
    let output = ''
    const collect = (text: Buffer) => {
      output = (output + text.toString()).slice(-2000)
    }
    const readEnd = (lines: number) => output.trim().split('\n').slice(-lines).join(' ')
    const progress = setInterval(() => report(readEnd(1)), reportMs)
    child.once('close', () => clearInterval(progress))
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code) => resolve(code === 0 ? undefined : readEnd(3)))
  })
}
