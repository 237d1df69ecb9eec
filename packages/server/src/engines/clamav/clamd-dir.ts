import { createHash } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Unprivileged } from '../../runtime/unprivileged.ts'

/** The kernel takes socket paths up to this many bytes, the closing zero included. */
const maxSocketPath = 107

/** Where our clamd lives, below the data directory: its socket, settings, scratch and the signatures it loads. */
export function prepareClamdDir(dataDir: string, name: string, user: Unprivileged) {
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const dir = join(realpathSync(dataDir), name)
  const socket = toSocket(dir)
  for (const made of new Set([dir, dirname(socket)])) {
    mkdirSync(made, { recursive: true })
    if (user.owner !== undefined) chownSync(made, user.owner.uid, user.owner.gid)
    chmodSync(made, 0o700)
  }
  return {
    dir,
    socket,
    configFile: join(dir, 'clamd.conf'),
    databaseDir: join(dir, 'database'),
  }
}

/** In its directory, or in that for temporary files where the path would be too long for the kernel. */
export function toSocket(dir: string): string {
  const near = join(dir, 'clamd.sock')
  if (Buffer.byteLength(near) < maxSocketPath) return near
  const hash = createHash('sha256').update(dir).digest('hex').slice(0, 16)
  return join(tmpdir(), `assay-clamd-${hash}`, 'clamd.sock')
}
