import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'

/** Files of one test run install packages at the same time. The longest installation takes two minutes on slow cores. */
const lock = ['-o', 'DPkg::Lock::Timeout=300']
const options = {
  timeout: 600_000,
  env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
}
const canInstall = () => process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
const toArgs = (packages: string[]) => [...lock, 'install', '-y', '-q', '--no-install-recommends', ...packages]

/** Installs packages of Debian as root. Does nothing for other users: tests that need a missing program are skipped. */
export function installPackages(packages: string[]) {
  if (!canInstall() || packages.length === 0) return
  const runApt = (program: string, args: string[]) =>
    spawnSync(`/usr/bin/${program}`, args, { ...options, stdio: ['ignore', 'pipe', 'ignore'] })
  // apt-get installs nothing when it does not know one of the packages.
  const listKnown = () =>
    runApt('apt-cache', ['show', '--no-all-versions', ...packages])
      .stdout.toString()
      .split('\n')
      .flatMap((line) => /^Package: (.+)$/.exec(line)?.[1] ?? [])
  // A machine that has never asked for the lists of packages knows few or none.
  if (listKnown().length < packages.length) runApt('apt-get', ['update', '-q'])
  const known = listKnown()
  if (known.length > 0) runApt('apt-get', toArgs(known))
}

/** Installs packages as `installPackages` does, while this process goes on. apt must know them. */
export async function installPackagesMeanwhile(packages: string[]) {
  if (canInstall()) await promisify(execFile)('/usr/bin/apt-get', toArgs(packages), options).catch(() => {})
}
