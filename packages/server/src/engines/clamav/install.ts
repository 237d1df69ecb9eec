import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import type { Logger } from '../../runtime/logger.ts'

const packages = ['clamav-daemon', 'clamav-freshclam']
export const installCommand = `apt-get install --no-install-recommends ${packages.join(' ')}`
const timeoutMs = 10 * 60_000

/** Installs ClamAV from the distribution, where we may; otherwise says what the operator has to type. */
export async function installClamAv(log: Logger): Promise<boolean> {
  if (!isDebian()) {
    log.warn(
      'ClamAV is not installed. Install its clamd with the package manager of this system, then start Assay again.',
    )
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
  const fault = (await run([...prefix, 'apt-get', 'update', '-q'])) ?? (await run([...prefix, ...toInstall()]))
  if (fault === undefined) log.info('ClamAV is installed')
  else log.error(`ClamAV could not be installed: ${fault} Type: sudo ${installCommand}`)
  return fault === undefined
}

const toInstall = () => [
  ...['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', 'install', '-y', '-q', '--no-install-recommends'],
  ...packages,
]

function isDebian(): boolean {
  if (!existsSync('/usr/bin/apt-get')) return false
  return /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(
    existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '',
  )
}

/** Nothing for root; sudo where it asks for no password; undefined where neither is so. */
function findRootPrefix(): string[] | undefined {
  if (process.getuid?.() === 0) return []
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : undefined
}

/** The last words of the command when it failed. */
function run([command = '', ...args]: string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: timeoutMs })
    let said = ''
    const hear = (text: Buffer) => {
      said = (said + text.toString()).slice(-2000)
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code) => resolve(code === 0 ? undefined : said.trim().split('\n').slice(-3).join(' ')))
  })
}
