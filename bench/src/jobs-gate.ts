import { randomBytes, randomUUID } from 'node:crypto'
import { openStores } from '../../packages/server/src/compose/stores.ts'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { makeAdmissionGate } from '../../packages/server/src/database/admission-gate.ts'
import { toKeyDigest } from '../../packages/server/src/domain/accounts/keys.ts'
import type { NewScan } from '../../packages/server/src/domain/scans/scan.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'

/**
 * `scan` is the call that `admission.ts` makes: request, charge and record in one. `job` stands for the two calls of a
 * submission, one after its head and one after its body, the second with 1 KB of content.
 */
export type GateJob = { kind: 'scan' | 'job'; callers: number; seconds: number }
export type GateResult = { perSecond: number }

/** The gate of the service alone, on a database of its own, for one busy account. */
const { config } = loadConfig({ ...process.env, ASSAY_DATA_DIR: process.argv[2] ?? '' })
const opening = openGate()

/** Child process of the benchmark: reads jobs and writes results. */
process.on('message', (job: GateJob) => {
  measure(job).then(
    (result: GateResult) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
const stop = () => void opening.then(({ close }) => close()).finally(() => process.exit())
process.on('disconnect', stop)
process.on('SIGTERM', stop)

async function openGate() {
  const { database, registration, close } = await openStores(
    config,
    'service',
    makeLogger({ level: 'warn', region: 'bench' }),
  )
  const { apiKey } = await registration.register({ name: 'hot', plan: 'unlimited' })
  return { pool: database.pool, keyDigest: toKeyDigest(apiKey), gate: makeAdmissionGate(database), close }
}

async function measure({ kind, callers, seconds }: GateJob): Promise<GateResult> {
  const { pool, keyDigest, gate } = await opening
  await pool.query('truncate jobs')
  const source = { at: 'row' as const, sealed: randomBytes(1024 + 128) }
  const admitScan = () => gate.admit({ keyDigest, countsRequest: true, scan: newScan('sync') })
  const admitJob = async () => {
    await gate.admit({ keyDigest, countsRequest: true })
    return gate.admit({
      keyDigest,
      countsRequest: false,
      scan: newScan('async'),
      job: { queue: 'bench', source, callbackUrl: null },
    })
  }
  const admit = kind === 'scan' ? admitScan : admitJob
  let done = 0
  const start = performance.now()
  const call = async () => {
    while (performance.now() - start < seconds * 1000) {
      const { outcome } = await admit()
      if (outcome !== 'admitted') throw new Error(`The gate answers ${outcome}`)
      done++
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  return { perSecond: (done * 1000) / (performance.now() - start) }
}

const newScan = (mode: 'sync' | 'async'): NewScan => ({
  id: randomUUID(),
  kind: 'malware',
  mode,
  region: 'bench',
  status: 'pending',
  signals: null,
  metadata: null,
  contentLength: 1024,
  contentType: 'text/plain',
  contentName: 'bench.txt',
  createdAt: new Date(),
  completedAt: null,
})
