import { makeIdempotencyStore } from '../../src/database/admission-gate.ts'
import { makeDeliveryStore } from '../../src/database/delivery-store.ts'
import { makeJobStore } from '../../src/database/job-store.ts'
import type { AdmissionCall } from '../../src/domain/ports/admission-gate.ts'
import type { ClaimedJob, Completion, NewJob } from '../../src/domain/ports/job-store.ts'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores } from '../support/test-stores.ts'

export const leaseMs = 30_000
export const testQueue = 'malware anywhere'

/** Opens stores with a queue, and the steps that tests of jobs share. */
export async function openTestJobs() {
  const stores = await openTestStores()
  const { pool } = stores.database
  return {
    ...stores,
    pool,
    listQueues: () => [testQueue],
    // Tests end leases and claim at once.
    requeueEveryMs: 0,
    jobs: makeJobStore({ pool, listQueues: () => [testQueue], requeueEveryMs: 0 }),
    deliveries: makeDeliveryStore({ pool, sealer: stores.sealer }),
    idempotency: makeIdempotencyStore({ pool }),
    /** Returns the id of the scan. */
    async submit(keyDigest: string, job: Partial<NewJob> = {}): Promise<string> {
      const ask = newSubmit(keyDigest, job)
      const { outcome } = await stores.gate.admit(ask)
      if (outcome !== 'admitted') throw new Error(`The gate says ${outcome}`)
      return ask.scan.id
    },
    /** Inserts jobs without a charge, for tests that need very many. */
    async fill(accountId: string, count: number) {
      await pool.query(
        `with made as (select gen_random_uuid() as id from generate_series(1, $2)),
         recorded as (
           insert into scans (id, account_id, kind, mode, region, content_length, content_type)
           select id, $1, 'malware', 'async', 'test', 1, 'text/plain' from made
         )
         insert into jobs (scan_id, account_id, queue, sealed) select id, $1, '${testQueue}', 'x' from made`,
        [accountId, count],
      )
    },
    async endLeases() {
      await pool.query(`update jobs set held_until = now() - interval '1 ms' where held_until is not null`)
    },
    async count(table: 'jobs' | 'scans' | 'deliveries' | 'idempotency_keys', accountId: string): Promise<number> {
      const { rows } = await pool.query<{ n: number }>(
        `select count(*)::int as n from ${table} where account_id = $1`,
        [accountId],
      )
      return rows[0]?.n ?? -1
    },
    async clear() {
      await pool.query('truncate jobs, deliveries, delivery_attempts, webhook_endpoints')
    },
  }
}

export type TestJobs = Awaited<ReturnType<typeof openTestJobs>>

export const newSubmit = (keyDigest: string, job: Partial<NewJob> = {}) =>
  ({
    keyDigest,
    countsRequest: true,
    scan: newTestScan({ mode: 'async' }),
    job: { queue: testQueue, source: { at: 'url', url: 'https://origin.test/a' }, callbackUrl: null, ...job },
  }) satisfies AdmissionCall

export const toCompletion = (job: ClaimedJob, change: Partial<Completion> = {}): Completion => ({
  scan: { ...job.scan, status: 'clean', signals: [], metadata: { hash_sha1: 'x' }, completedAt: new Date() },
  refunds: false,
  deliveryBody: job.callbackUrl === null ? undefined : `{"id":"${job.scan.id}"}`,
  ...change,
})

export const toFailure = (job: ClaimedJob): Completion =>
  toCompletion(job, {
    scan: { ...job.scan, status: 'error', signals: ['Error:EngineFailed'], completedAt: new Date() },
    refunds: true,
  })
