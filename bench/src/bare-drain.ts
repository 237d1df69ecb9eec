import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Pool } from 'pg'
import { jobsPerCore } from '../../packages/server/src/compose/background.ts'
import { makeJobStore } from '../../packages/server/src/database/job-store.ts'
import type { ClaimedJob } from '../../packages/server/src/domain/ports/job-store.ts'
import { makeClamdClient } from '../../packages/server/src/engines/clamav/client.ts'

const concurrency = jobsPerCore * availableParallelism()
const leaseMs = 15_000

/**
 * The minimum work of a worker: claims, a scan over a kept connection, and completion in the database. No decryption,
 * no lists, no verdict, no content to remove, no log. Returns the number of jobs.
 */
export async function drainBarely({ pool, queue, socket }: { pool: Pool; queue: string; socket: string }) {
  const jobs = makeJobStore({ pool, listQueues: () => [queue] })
  const client = makeClamdClient({ address: { path: socket } })
  const never = new AbortController().signal
  let [running, done] = [0, 0]
  /** Resolves when this many jobs are left. */
  let awaited = { left: 0, reached: Promise.withResolvers<void>() }
  const failed = Promise.withResolvers<never>()

  const work = async ({ lease, scan }: ClaimedJob) => {
    const whole = randomBytes(1024)
    const content = {
      isInMemory: true,
      whole,
      bytes: whole.length,
      head: whole,
      sha1: '',
      sha256: '',
      read: noBytes,
      release: noBytes,
    }
    const answer = await client.scan(content, { signal: never })
    if (!answer.endsWith('OK')) throw new Error(`clamd says ${answer}`)
    const end = { ...scan, status: 'clean' as const, signals: [], completedAt: new Date() }
    await jobs.complete(lease, { scan: end, refunds: false, deliveryBody: undefined })
    done++
    if (--running <= awaited.left) awaited.reached.resolve()
  }

  try {
    for (;;) {
      const claimed = await jobs.claim(concurrency - running, leaseMs)
      running += claimed.length
      // Claims again when half of the jobs are complete, as the service does.
      awaited = { left: claimed.length === 0 ? 0 : concurrency / 2, reached: Promise.withResolvers() }
      for (const job of claimed) work(job).catch(failed.reject)
      if (running === 0) return done
      if (running > awaited.left) await Promise.race([awaited.reached.promise, failed.promise])
    }
  } finally {
    client.close()
  }
}

const noBytes = () => {
  throw new Error('The content is in memory')
}
