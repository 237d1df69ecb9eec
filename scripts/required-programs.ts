import { spawnSync } from 'node:child_process'

/** Debian's package of each program that a script for maintainers uses; without an entry it has the program's name. */
const packages: Record<string, string> = {
  busybox: 'busybox-static',
  clamd: 'clamav-daemon',
  etcd: 'etcd-server',
  nsenter: 'util-linux',
  patroni: 'patroni python3-etcd',
  patronictl: 'patroni',
  prlimit: 'util-linux',
  ps: 'procps',
  'systemd-nspawn': 'systemd-container',
  unshare: 'util-linux',
}

/** Throws a sentence that says what is missing and how to install it. */
export function requirePrograms(...names: string[]) {
  const missing = names.filter((name) => spawnSync('which', [name], { env: { PATH: searched } }).status !== 0)
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
