import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../../acceptance/support/free-port.ts'
import { assembleInstallation, type Cpu } from './installation.ts'
import { pack } from './pack.ts'
import { type Running, startService, trialSettings } from './try-service.ts'

export const toArchiveName = (version: string, cpu: Cpu) => `assay-${version}-linux-${cpu}`

type ArchiveBuild = {
  version: string
  cpu: Cpu
  epoch: number
  work: string
  file: string
  modulesFrom?: string
  isCompressed?: boolean
}

/** Assembles an installation below `work` and packs it; returns its directory, which the caller may use and remove. */
export function packArchive(
  repository: string,
  { version, cpu, epoch, work, file, modulesFrom, isCompressed = true }: ArchiveBuild,
): string {
  const name = toArchiveName(version, cpu)
  const dir = join(work, name)
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  assembleInstallation(repository, { dir, cpu, epoch, ...(modulesFrom !== undefined && { modulesFrom }) })
  pack({ dir: work, names: [name], file: `${file}.part`, epoch, isCompressed })
  renameSync(`${file}.part`, file)
  return dir
}

/** Unpacks an archive into an empty directory and starts it there as its readers do, without npm and Node in PATH. */
export async function startArchive(file: string, name: string, work: string): Promise<Running> {
  execFileSync('tar', ['-xzf', file, '-C', work])
  const port = await findFreePort()
  const env = {
    ...trialSettings,
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: work,
    ASSAY_PORT: String(port),
    ASSAY_METRICS_PORT: '0',
    ASSAY_CLAMAV_INSTALL: 'never',
    ASSAY_SCRATCH_MB: '512',
  }
  return startService(['./assay', 'serve'], { cwd: join(work, name), env, port })
}
