import { rmSync } from 'node:fs'
import type { Unprivileged } from '../../runtime/unprivileged.ts'
import { toClamdConfig } from './clamd-config.ts'
import { prepareClamdDir } from './clamd-dir.ts'
import type { Sandbox } from './sandbox.ts'
import { placeSignatureFiles, type SignatureFile } from './signature-files.ts'
import { startClamd } from './start-clamd.ts'

/**
 * Loads signature files into a clamd of their own, to see whether they can be loaded: a single broken file makes clamd
 * refuse the whole database, and then it does not even start. Takes about a tenth of a second for small files.
 */
export function makeTrial(deps: {
  binary: string
  dataDir: string
  user: Unprivileged
  chooseSandbox(dir: string): Sandbox
}) {
  return {
    /** What is wrong with them; undefined when they load. */
    async findFault(files: SignatureFile[]): Promise<string | undefined> {
      const place = prepareClamdDir(deps.dataDir, `clamav-trial-${process.pid}`, deps.user)
      const { socket, configFile, databaseDir, dir } = place
      try {
        placeSignatureFiles(files, new Set(), databaseDir)
        const sandbox = deps.chooseSandbox(dir)
        const config = toClamdConfig({ databaseDir, socket, scratchDir: sandbox.scratchDir, threads: 2 })
        const clamd = await startClamd({ binary: deps.binary, config, configFile, socket, sandbox })
        clamd.kill('SIGKILL')
        await clamd.exited
        return undefined
      } catch (error) {
        return (error as Error).message
      } finally {
        rmSync(dir, { recursive: true, force: true })
      }
    },
  }
}

export type Trial = ReturnType<typeof makeTrial>
