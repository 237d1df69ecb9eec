import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Debian's package of each program or file that a script for maintainers uses, if it has another name. */
const packages: Record<string, string> = {
  '/usr/share/keyrings/debian-archive-keyring.gpg': 'debian-archive-keyring',
  busybox: 'busybox-static',
  clamd: 'clamav-daemon',
  'dpkg-deb': 'dpkg',
  etcd: 'etcd-server',
  freshclam: 'clamav-freshclam',
  go: 'golang-go',
  nsenter: 'util-linux',
  patroni: 'patroni python3-etcd',
  patronictl: 'patroni',
  prlimit: 'util-linux',
  ps: 'procps',
  'systemd-nspawn': 'systemd-container',
  unshare: 'util-linux',
}

/** Throws a sentence that says which programs, and files named by their paths, are missing and how to install them. */
export function requirePrograms(...names: string[]) {
  const isThere = (name: string) =>
    name.startsWith('/') ? existsSync(name) : spawnSync('which', [name], { env: { PATH: searched } }).status === 0
  const missing = names.filter((name) => !isThere(name))
  if (missing.length === 0) return
  const wanted = [...new Set(missing.map((name) => packages[name] ?? name))]
  throw new Error(
    `Missing: ${missing.join(', ')}. Install ${missing.length === 1 ? 'it' : 'them'} with: apt-get install ${wanted.join(' ')}`,
  )
}

/** The PATH of ordinary users often has no sbin. */
const searched = `${process.env.PATH}:/usr/sbin:/sbin`

/** Ends a script whose programs are missing, or that needs root, with one sentence. */
export function exitUnlessPossible({ programs, asRoot = false }: { programs: string[]; asRoot?: boolean }) {
  try {
    if (asRoot && process.getuid?.() !== 0) throw new Error('Run this as root, for example with sudo.')
    requirePrograms(...programs)
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exit(2)
  }
}
