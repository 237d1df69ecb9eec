import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { debianMirror as debian } from './debian-mirror.ts'
import { openDebianRoot } from './debian-root.ts'
import { expectConsole, expectScans, fetchText, trialSettings, waitUntil } from './release/try-service.ts'

const ubuntu = process.env.UBUNTU_MIRROR ?? 'http://archive.ubuntu.com/ubuntu'
const ubuntuKeyring = '/usr/share/keyrings/ubuntu-archive-keyring.gpg'

type System = { suite: string; mirror: string; change?(root: string): void; advice: RegExp }
const apt = /type sudo apt-get install/

/** Systems without ClamAV, Node and npm, in which the archive must start and say how to install ClamAV. */
const systems: Record<string, System> = {
  'Debian 11': { suite: 'bullseye', mirror: debian, advice: apt },
  'Debian 12': { suite: 'bookworm', mirror: debian, advice: apt },
  'Debian 13': { suite: 'trixie', mirror: debian, advice: apt },
  'Ubuntu 22.04': { suite: 'jammy', mirror: ubuntu, advice: apt },
  'Ubuntu 24.04': { suite: 'noble', mirror: ubuntu, advice: apt },
  // There is no mirror of Fedora to install from: the name and the missing apt are what the program sees of it.
  'Debian 11 that says it is Fedora': {
    suite: 'bullseye',
    mirror: debian,
    advice: /type sudo dnf install clamd clamav-freshclam/,
    change(root) {
      rmSync(join(root, 'usr/bin/apt-get'))
      rmSync(join(root, 'etc/os-release'))
      writeFileSync(join(root, 'etc/os-release'), 'NAME="Fedora Linux"\nID=fedora\nVERSION_ID=43\n')
    },
  },
}

/** Starts the archive in a root of each system; returns a line for each. */
export async function* tryArchiveOnSystems(repository: string, archive: string, work: string) {
  for (const [name, system] of Object.entries(systems)) {
    // The scripts of a root's packages run as root here, so that they must be verified.
    if (system.mirror === ubuntu && !existsSync(ubuntuKeyring)) {
      yield `${name}: skipped, because ${ubuntuKeyring} is missing, which Ubuntu's package ubuntu-keyring contains`
      continue
    }
    const root = join(work, 'system')
    makeRoot(root, system)
    try {
      yield `${name}: ${await tryOn(repository, archive, root, system.advice)}`
    } finally {
      rmSync(root, { recursive: true, force: true, maxRetries: 5 })
    }
  }
  yield `Alpine-like, busybox without glibc: ${tryWithoutGlibc(archive, join(work, 'alpine'))}`
}

function makeRoot(root: string, { suite, mirror, change }: System) {
  const isUbuntu = mirror === ubuntu
  const keys = isUbuntu ? [`--keyring=${ubuntuKeyring}`] : []
  const script = isUbuntu ? ['/usr/share/debootstrap/scripts/gutsy'] : []
  execFileSync('debootstrap', ['--variant=minbase', ...keys, suite, root, mirror, ...script], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  chmodSync(root, 0o755)
  change?.(root)
}

/** Unpacks and starts the archive as an ordinary user, who cannot install ClamAV. */
async function tryOn(repository: string, archive: string, root: string, advice: RegExp): Promise<string> {
  const port = await findFreePort()
  mkdirSync(join(root, 'opt/assay'))
  execFileSync('tar', ['-xzf', archive, '-C', join(root, 'opt/assay'), '--strip-components=1'])
  const machine = await openDebianRoot(root)
  try {
    machine.run('root', 'useradd --create-home reader')
    const settings = { ...trialSettings, ASSAY_PORT: String(port), ASSAY_METRICS_PORT: '0', ASSAY_SCRATCH_MB: '256' }
    const env = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
    const child = machine.start('reader', `exec env ${env.join(' ')} /opt/assay/assay serve`)
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text) => (output += text))
    const ended = new Promise((resolve) => child.once('close', resolve))
    try {
      const url = `http://127.0.0.1:${port}`
      await expectScans(repository, url, 'degraded')
      await expectConsole((path) => fetchText(url + path))
      await waitUntil(() => advice.test(output))
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${output}`, { cause: error })
    } finally {
      process.kill(-(child.pid ?? 0), 'SIGTERM')
      await ended
    }
    const [glibc = ''] = machine.run('root', 'getconf GNU_LIBC_VERSION').trim().split('\n')
    return `started on ${glibc} without ClamAV, EICAR found by YARA, console served, names the command for ClamAV`
  } finally {
    machine.close()
  }
}

/** A root with busybox alone, which has a shell and no glibc, as Alpine does. */
function tryWithoutGlibc(archive: string, root: string): string {
  for (const dir of ['bin', 'opt/assay']) mkdirSync(join(root, dir), { recursive: true })
  cpSync('/bin/busybox', join(root, 'bin/busybox'), { dereference: true })
  for (const name of ['sh', 'uname', 'readlink', 'head']) symlinkSync('busybox', join(root, 'bin', name))
  execFileSync('tar', ['-xzf', archive, '-C', join(root, 'opt/assay'), '--strip-components=1'])
  let said = ''
  try {
    execFileSync('chroot', [root, '/opt/assay/assay', 'serve'], {
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      stdio: 'pipe',
    })
  } catch (error) {
    said = String((error as { stderr?: Buffer }).stderr)
  }
  rmSync(root, { recursive: true })
  assert.match(said, /^Assay needs glibc 2\.28 or newer, and this system has no .*Run the container image/ms)
  return 'refused, and says to run the image'
}
