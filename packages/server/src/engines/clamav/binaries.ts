import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Ordinary users often have no sbin on their path. */
const alsoIn = ['/usr/sbin', '/usr/local/sbin', '/usr/bin', '/usr/local/bin', '/opt/clamav/sbin', '/opt/clamav/bin']

/** Where a program of ClamAV's is on this machine. */
export function findProgram(name: 'clamd' | 'freshclam'): string | undefined {
  const dirs = [...(process.env.PATH ?? '').split(delimiter).filter((dir) => dir !== ''), ...alsoIn]
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
