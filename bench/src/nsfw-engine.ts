import { createReadStream } from 'node:fs'
import { openScanner } from '../../packages/server/src/compose/local-scan.ts'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { EngineBusy } from '../../packages/server/src/domain/ports/engines.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'

/** Scans each picture `rounds` times, this many at once. */
export type EngineJob = { files: string[]; rounds: number; atOnce: number }
export type EngineResult = { done: number }

/** Pictures up to the limit of background jobs through the engine of the service, without HTTP and database. */
const { config } = loadConfig({ ...process.env, ...JSON.parse(process.argv[2] ?? '{}'), ASSAY_VERDICT_CACHE: '0' })
const scanner = openScanner(config, makeLogger({ level: 'warn', region: config.region }), 'nsfw_image')

/** Child process of the benchmark: reads jobs and writes results. */
process.on('message', (job: EngineJob) => {
  work(job).then(
    (result: EngineResult) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
const stop = () => void scanner.then(({ close }) => close()).finally(() => process.exit())
process.on('disconnect', stop)
process.on('SIGTERM', stop)

async function work({ files, rounds, atOnce }: EngineJob): Promise<EngineResult> {
  let next = 0
  const one = async () => {
    for (let turn = next++; turn < files.length * rounds; turn = next++) {
      const file = files[turn % files.length] ?? ''
      const { status, signals } = await scanUntilFree(file)
      if (status === 'error') throw new Error(`${file}: ${status} ${signals.join(' ')}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  return { done: files.length * rounds }
}

/** Tries again as a client would: on a slow machine, large pictures wait longer for a process than a caller may. */
async function scanUntilFree(file: string) {
  const { scan } = await scanner
  for (;;) {
    try {
      return await scan(createReadStream(file, { highWaterMark: 256 * 1024 }), file)
    } catch (error) {
      if (!(error instanceof EngineBusy)) throw error
    }
  }
}
