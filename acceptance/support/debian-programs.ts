import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type DebianRoot, openDebianRoot } from '../../scripts/debian-root.ts'
import { dataRoot } from './data-root.ts'

export type DebianPrograms = DebianRoot & {
  /** A directory that the programs see as `/srv/assay`. */
  shared: string
}

const cache = fileURLToPath(new URL('../../node_modules/.cache/debian-programs', import.meta.url))

/**
 * Downloads packages with what they depend on and unpacks them into a directory, without installing them: this machine
 * keeps its mail server, and no service starts. Packages of different groups may conflict with each other. Returns the
 * directory, or the reason why there is none.
 */
export function fetchDebianPrograms(...groups: string[][]): { dir: string } | { lacking: string } {
  if (process.getuid?.() !== 0) return { lacking: 'only root can mount what Debian programs need' }
  if (!existsSync('/usr/bin/apt-get')) return { lacking: 'there is no apt-get' }
  if (!canOverlay()) return { lacking: 'overlay file systems cannot be mounted here' }
  const dir = join(cache, createHash('sha256').update(JSON.stringify(groups)).digest('hex').slice(0, 16))
  if (existsSync(dir)) return { dir }
  mkdirSync(cache, { recursive: true })
  const work = mkdtempSync(join(cache, 'new-'))
  try {
    const files = groups.flatMap((packages, n) => download(packages, join(work, `archives-${n}`)))
    const tree = join(work, 'tree')
    unpack(files, tree)
    if (!existsSync(dir)) renameSync(tree, dir)
    return { dir }
  } catch (error) {
    return { lacking: `the packages could not be downloaded: ${(error as Error).message.split('\n')[0]}` }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function download(packages: string[], dir: string): string[] {
  mkdirSync(join(dir, 'partial'), { recursive: true })
  const settings = ['-o', `Dir::Cache::archives=${dir}`, '-o', 'Debug::NoLocking=1', '-o', 'APT::Sandbox::User=root']
  const args = ['install', '-y', '-q', '--no-install-recommends', '--download-only', ...packages]
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  execFileSync('apt-get', [...settings, ...args], { stdio: ['ignore', 'ignore', 'pipe'], timeout: 120_000, env })
  return readdirSync(dir).flatMap((name) => (name.endsWith('.deb') ? [join(dir, name)] : []))
}

/** Packages have files in /lib and /bin, which are links into /usr on an installed machine. */
function unpack(files: string[], tree: string) {
  for (const name of ['lib', 'bin', 'sbin']) {
    mkdirSync(join(tree, 'usr', name), { recursive: true })
    symlinkSync(`usr/${name}`, join(tree, name))
  }
  for (const file of files) {
    const extract = 'dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink --exclude ./usr/share/doc -C "$1"'
    execFileSync('bash', ['-eo', 'pipefail', '-c', extract, file, tree], { stdio: ['ignore', 'ignore', 'pipe'] })
  }
}

function canOverlay(): boolean {
  const dir = mkdtempSync(join(tmpdir(), 'assay-overlay-'))
  for (const name of ['upper', 'work', 'root']) mkdirSync(join(dir, name))
  const options = `lowerdir=/,upperdir=${dir}/upper,workdir=${dir}/work`
  const args = ['--mount', 'mount', '-t', 'overlay', 'overlay', '-o', options, join(dir, 'root')]
  const { status } = spawnSync('unshare', args, { stdio: 'ignore' })
  rmSync(dir, { recursive: true, force: true })
  return status === 0
}

/** Opens this machine with the unpacked programs laid over it. What they change, and their processes, end with `close`. */
export async function openDebianPrograms(tree: string): Promise<DebianPrograms> {
  const dir = mkdtempSync(join(dataRoot, 'assay-programs-'))
  for (const name of ['work', 'root', 'shared']) mkdirSync(join(dir, name))
  cpSync(tree, join(dir, 'upper'), { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
  const shared = join(dir, 'shared')
  chmodSync(shared, 0o755)
  const mounts = [
    `mount -t overlay overlay -o lowerdir=/,upperdir=${dir}/upper,workdir=${dir}/work "$0"`,
    'mount --bind /dev "$0/dev"',
    'mount -t tmpfs -o mode=0755 run "$0/run"',
    'mkdir -p "$0/srv/assay"',
    `mount --bind ${shared} "$0/srv/assay"`,
  ]
  const root = await openDebianRoot(join(dir, 'root'), mounts.join(' && '))
  return {
    ...root,
    shared,
    close() {
      root.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
