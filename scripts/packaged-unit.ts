import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { debianMirror } from './debian-mirror.ts'

const packages = ['systemd', 'systemd-sysv', 'dbus', 'curl', 'clamav-daemon', 'clamav-freshclam', 'libyara9']
const bootTimeoutMs = 60_000

export type Booted = {
  /** Runs a command inside and returns its output; throws when it fails. */
  run(...command: string[]): string
  close(): Promise<void>
}

/**
 * Boots a Debian with systemd and ClamAV by systemd-nspawn, with the archive in /root and the settings in /etc/assay.
 * The only network inside is the loopback.
 */
export async function bootWithArchive(archive: string, settings: Record<string, string>): Promise<Booted> {
  const dir = mkdtempSync(join(tmpdir(), 'packaged-unit-'))
  // The directory becomes / inside, which every user must be able to enter.
  chmodSync(dir, 0o755)
  execFileSync('debootstrap', ['--variant=minbase', 'bookworm', dir, debianMirror], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const apt = ['-y', '-q', '--no-install-recommends']
  execFileSync('chroot', [dir, 'apt-get', 'install', ...apt, ...packages], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: 'ignore',
  })
  copyFileSync(archive, join(dir, 'root', basename(archive)))
  mkdirSync(join(dir, 'etc/assay'))
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(join(dir, 'etc/assay/assay.env'), lines.join(''))
  // The units of the distribution are neither used nor needed.
  const wants = join(dir, 'etc/systemd/system/multi-user.target.wants')
  for (const name of ['clamav-daemon.service', 'clamav-freshclam.service']) rmSync(join(wants, name), { force: true })
  rmSync(join(dir, 'etc/machine-id'), { force: true })

  // systemd-nspawn would refuse the calls of Landlock, which the jail of the parsers needs.
  const landlock = ['create_ruleset', 'add_rule', 'restrict_self'].map((name) => `landlock_${name}`).join(' ')
  const options = ['--boot', '--register=no', '--keep-unit', '--private-network', `--system-call-filter=${landlock}`]
  const nspawn = spawn('systemd-nspawn', ['-D', dir, ...options], { stdio: 'ignore' })
  const ended = new Promise((resolve) => nspawn.once('exit', resolve))
  let init = ''
  const close = async () => {
    // The directory can be removed only after the first process inside has ended, and all others with it.
    if (init === '') nspawn.kill('SIGKILL')
    else process.kill(Number(init), 'SIGKILL')
    await ended
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
  }
  const spaces = ['--mount', '--pid', '--net', '--uts', '--ipc', '--cgroup', '--root', '--wd', '--']
  const run = (...command: string[]) => {
    const { status, stdout, stderr } = spawnSync('nsenter', ['--target', init, ...spaces, ...command], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
    return stdout
  }
  try {
    init = await findInit(nspawn.pid ?? 0)
    await waitForBus(run)
    return { run, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Waits until the booting system accepts commands. */
async function waitForBus(run: (...command: string[]) => string) {
  const deadline = performance.now() + bootTimeoutMs
  for (;;) {
    try {
      return run('systemctl', 'show', '--property=Version')
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
    await sleep(200)
  }
}

async function findInit(parent: number): Promise<string> {
  const deadline = performance.now() + bootTimeoutMs
  while (performance.now() < deadline) {
    const file = `/proc/${parent}/task/${parent}/children`
    const children = existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ') : []
    for (const child of children) {
      const comm = `/proc/${child}/comm`
      if (child !== '' && existsSync(comm) && readFileSync(comm, 'utf8').trim() === 'systemd') return child
    }
    await sleep(100)
  }
  throw new Error('systemd did not boot in systemd-nspawn.')
}
