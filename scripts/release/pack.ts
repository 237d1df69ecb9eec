import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'

/** Permissions of files that are the same whatever the umask of the builder: everybody reads, the owner writes. */
const plainMode = 'u=rwX,go=rX'

export type Packing = {
  /** Directory that the names are relative to. */
  dir: string
  names: string[]
  file: string
  /** Seconds since 1970 that every entry gets as its time. */
  epoch: number
  /** Numeric owner and group of every entry. */
  owner?: number
  /** How GNU tar changes the permissions of the files. */
  mode?: string
  isCompressed?: boolean
}

/**
 * Packs files so that the same contents give the same bytes on every machine: sorted names, one time, one owner, no
 * hard links, and a gzip header without name and time.
 */
export function pack({ dir, names, file, epoch, owner = 0, mode = plainMode, isCompressed = true }: Packing) {
  const compression = isCompressed ? ['--use-compress-program=gzip -n -6'] : []
  const owners = [`--owner=${owner}`, `--group=${owner}`, '--numeric-owner']
  const entries = ['--sort=name', '--format=gnu', '--hard-dereference', `--mtime=@${epoch}`, `--mode=${mode}`]
  execFileSync('tar', [...entries, ...owners, ...compression, '-C', dir, '-cf', file, '--', ...names], {
    env: { ...process.env, LC_ALL: 'C', TZ: 'UTC', TAR_OPTIONS: '', GZIP: '' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** The SHA-256 of a file, which may be larger than memory. */
export function hashFile(path: string): string {
  const hash = createHash('sha256')
  const piece = Buffer.alloc(1024 * 1024)
  const fd = openSync(path, 'r')
  try {
    for (;;) {
      const length = readSync(fd, piece, 0, piece.length, null)
      if (length === 0) return hash.digest('hex')
      hash.update(piece.subarray(0, length))
    }
  } finally {
    closeSync(fd)
  }
}
