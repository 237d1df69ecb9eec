import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Pool } from 'pg'
import { jobsPerCore } from '../../packages/server/src/compose/background.ts'
import { makeJobStore } from '../../packages/server/src/database/job-store.ts'
import type { ClaimedJob } from '../../packages/server/src/domain/ports/job-store.ts'
import { makeClamdClient } from '../../packages/server/src/engines/clamav/client.ts'
import { newContent } from './malware-content.ts'

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
  let [scanning, completing, done] = [0, 0, 0]
  /** Called after each completion. */
  let onCompleted = () => {}
  const failed = Promise.withResolvers<never>()

  const work = async ({ lease, scan }: ClaimedJob) => {
    const whole = newWhole(++contents)
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
    scanning--
    completing++
    await jobs.complete(lease, { scan: end, refunds: false, deliveryBody: undefined })
    completing--
    done++
    onCompleted()
  }

  try {
    for (;;) {
      const claimed = await jobs.claim(concurrency - scanning, leaseMs)
      scanning += claimed.length
      for (const job of claimed) work(job).catch(failed.reject)
      if (scanning + completing === 0) return done
      // Claims again when half of the jobs are scanned, as the service does.
      const mayClaim = () => (claimed.length > 0 ? scanning <= concurrency / 2 : scanning + completing === 0)
      const reached = Promise.withResolvers<void>()
      onCompleted = () => mayClaim() && reached.resolve()
      if (!mayClaim()) await Promise.race([reached.promise, failed.promise])
    }
  } finally {
    client.close()
  }
}

/** Counts over all drains: clamd remembers clean content, and scans no content a second time. */
let contents = 0
const seed = randomBytes(4).toString('hex')

/** Content as the load submits it: random bytes alone match a signature now and then. */
function newWhole(number: number): Buffer {
  const { pieces, stamp } = newContent(1024, number)
  stamp(`${seed}${number.toString(16).padStart(8, '0')}`)
  return Buffer.concat(pieces)
}

const noBytes = () => {
  throw new Error('The content is in memory')
}
