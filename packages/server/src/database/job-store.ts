import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { v7 } from 'uuid'
import type { ClaimedJob, Completion, JobStore, Lease } from '../domain/ports/job-store.ts'
import type { Scan } from '../domain/scans/scan.ts'
import { gatherMany, makeGroupCommit } from './group-commit.ts'
import {
  claimAbandonedStatement,
  claimStatement,
  completeStatement,
  countJobsStatement,
  extendLeasesStatement,
  findScansStatement,
  inspectQueueStatement,
  listNeededStatement,
  releaseStatement,
  requeueStatement,
} from './job-statements.ts'
import { changeRows, findRow, inTransaction, listRows, runStatement, withoutDiskWait } from './query.ts'
import { type SourceRow, toSource } from './scan-store.ts'

const settings = withoutDiskWait
const maxClaimRounds = 4

type Deps = {
  pool: Pool
  /** Lists the queues that this process can claim jobs from at the moment. */
  listQueues(): string[]
  /** How often claims look for leases that have run out and pauses that are over. Workers claim more often than that. */
  requeueEveryMs?: number
}

export function makeJobStore({ pool, listQueues, requeueEveryMs = 100 }: Deps): JobStore {
  // The turns begin at a random account: processes that begin at the same one would compete for the same jobs.
  let lastServed: string = randomUUID()

  const completeInBatch = makeGroupCommit({
    run: (items: CompletedItem[]) => completeAll(pool, items),
    maxBatch: 256,
    gathering: gatherMany,
  })

  let requeuedAt = -Infinity

  /** Puts jobs back into the queue. Returns false if nothing waits: an idle worker then asks nothing more. */
  async function requeue(): Promise<boolean> {
    if (performance.now() - requeuedAt < requeueEveryMs) return true
    const found = await findRow<{ hasOverdue: boolean; hasWaiting: boolean }>(pool, inspectQueueStatement)
    if (found?.hasOverdue) await inTransaction(pool, (client) => changeRows(client, requeueStatement), { settings })
    requeuedAt = performance.now()
    return found?.hasOverdue === true || found?.hasWaiting === true
  }

  async function claimOnce(limit: number, leaseMs: number) {
    const values = [limit, leaseMs, lastServed, listQueues()]
    const { rows } = await runStatement<ClaimedRow | NothingClaimed>(pool, claimStatement, values)
    const claimed = rows.filter((row): row is ClaimedRow => row.token !== null)
    lastServed = claimed.at(-1)?.accountId ?? lastServed
    return { claimed, hasMore: rows[0]?.hasMore === true }
  }

  return {
    async claim(limit, leaseMs) {
      const claimed: ClaimedRow[] = []
      if (!(await requeue())) return []
      // One round may fall short: other processes may have locked jobs that this one saw, or accounts with many jobs
      // may have to make up for accounts with few.
      for (let round = 0; round < maxClaimRounds && claimed.length < limit; round++) {
        const next = await claimOnce(limit - claimed.length, leaseMs)
        claimed.push(...next.claimed)
        if (!next.hasMore) break
      }
      return withScans(pool, claimed)
    },

    async claimAbandoned(ageMs, limit, leaseMs) {
      const { rows } = await runStatement<ClaimedRow>(pool, claimAbandonedStatement, [ageMs, limit, leaseMs])
      return withScans(pool, rows)
    },

    async extend(leases, leaseMs) {
      if (leases.length === 0) return []
      const values = [leases.map(({ scanId }) => scanId), leases.map(({ token }) => token), leaseMs]
      return inTransaction(pool, (client) => listRows<Lease>(client, extendLeasesStatement, values), { settings })
    },

    complete: (lease, completion) => completeInBatch({ lease, completion }),

    async release({ scanId, token }, { ms, countsAttempt }) {
      const values = [scanId, token, ms, countsAttempt ? 0 : 1]
      await inTransaction(pool, (client) => changeRows(client, releaseStatement, values), { settings })
    },

    async countJobs() {
      const row = await findRow<{ waiting: number; running: number; oldestSeconds: number }>(pool, countJobsStatement)
      return row ?? { waiting: 0, running: 0, oldestSeconds: 0 }
    },

    async listNeeded(keys) {
      return (await listRows<{ key: string }>(pool, listNeededStatement, [keys])).map(({ key }) => key)
    },
  }
}

type CompletedItem = { lease: Lease; completion: Completion }

async function completeAll(pool: Pool, items: CompletedItem[]): Promise<boolean[]> {
  const results = items.map(({ lease, completion: { scan, refunds, deliveryBody } }, i) => ({
    i,
    id: lease.scanId,
    token: lease.token,
    status: scan.status,
    content_length: scan.contentLength,
    content_type: scan.contentType,
    content_name: scan.contentName ?? undefined,
    signals: scan.signals,
    metadata: scan.metadata,
    completed_at: scan.completedAt,
    ...(refunds ? { refunds } : {}),
    ...(deliveryBody === undefined ? {} : { delivery_id: v7(), delivery_body: deliveryBody }),
  }))
  const values = [JSON.stringify(results), ...toBounds(results.map(({ id }) => id))]
  const { rows } = await runStatement<{ i: number }>(pool, completeStatement, values)
  const completed = new Set(rows.map(({ i }) => i))
  return items.map((_, i) => completed.has(i))
}

type ClaimedRow = SourceRow & {
  scanId: string
  accountId: string
  attempts: number
  token: string
  testCase: string | null
  callbackUrl: string | null
  flagsSexy: boolean | null
  hasMore: boolean
}
type NothingClaimed = { token: null; hasMore: boolean }

/** Only the completion of its job changes a scan, and these jobs are leased, so reading the scans later is safe. */
async function withScans(pool: Pool, claimed: ClaimedRow[]): Promise<ClaimedJob[]> {
  if (claimed.length === 0) return []
  const ids = claimed.map(({ scanId }) => scanId)
  const found = await listRows<Scan>(pool, findScansStatement, [ids, ...toBounds(ids)])
  const scans = new Map(found.map((scan) => [scan.id, scan]))
  return claimed.flatMap((row) => {
    const scan = scans.get(row.scanId)
    return scan === undefined ? [] : [toClaimedJob(row, scan)]
  })
}

/** The first and the last id in the order of the database, which is the order of their digits. */
function toBounds(ids: string[]): [string | undefined, string | undefined] {
  const sorted = ids.map((id) => id.toLowerCase()).sort()
  return [sorted[0], sorted.at(-1)]
}

const toClaimedJob = (row: ClaimedRow, scan: Scan): ClaimedJob => ({
  lease: { scanId: row.scanId, token: row.token },
  accountId: row.accountId,
  flagsSexy: row.flagsSexy ?? true,
  scan,
  attempt: row.attempts,
  source: row.testCase === null ? toSource(row) : { at: 'test', testCase: row.testCase },
  callbackUrl: row.callbackUrl,
})
