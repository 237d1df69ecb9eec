import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findProgram } from '../../src/engines/clamav/installation.ts'
import { type OwnClamdOptions, openOwnClamd } from '../../src/engines/clamav/open-own-clamd.ts'
import { silentLog } from '../support/silent-log.ts'

const shipped = fileURLToPath(new URL('../../signatures', import.meta.url))

/** The reason to skip tests that need the real clamd, or false. */
export const whyNoClamd: string | false =
  findProgram('clamd') === undefined && 'clamd is not installed: apt-get install clamav-daemon'

export async function openTestClamd(dataDir: string, change: Partial<OwnClamdOptions> = {}) {
  const signatures = join(dataDir, 'signatures')
  const clamav = await openOwnClamd({
    binary: findProgram('clamd') ?? '',
    dataDir,
    dirs: {
      shipped,
      official: join(signatures, 'official'),
      own: join(signatures, 'own'),
      shared: join(signatures, 'shared'),
    },
    threads: 4,
    scratchMegabytes: 256,
    acceptsDisk: false,
    updates: undefined,
    log: silentLog,
    ...change,
  })
  return { ...clamav, pid: findPid(dataDir) }
}

/** The process id of the clamd with the settings in that directory; `unshare` and `setpriv` have executed it. */
export function findPid(dataDir: string): number | undefined {
  const config = `--config-file=${join(dataDir, 'clamav', 'clamd.conf')}`
  return readdirSync('/proc')
    .map(Number)
    .find((pid) => Number.isInteger(pid) && isClamd(pid, config))
}

function isClamd(pid: number, config: string): boolean {
  try {
    const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return program.endsWith('clamd') && args.includes(config)
  } catch {
    return false
  }
}
