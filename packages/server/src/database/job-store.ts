import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'
import { v7 } from 'uuid'
import type { ClaimedJob, Completion, JobStore, Lease } from '../domain/ports/job-store.ts'
import type { Scan } from '../domain/scans/scan.ts'
import { claimAbandonedStatement, claimStatement, findScansStatement, requeueStatement } from './claim-statement.ts'
import { completeStatement } from './complete-statement.ts'
import { makeGroupCommit } from './group-commit.ts'
import { type SourceRow, toSource } from './job-columns.ts'
import { lazily, runTransaction } from './run-transaction.ts'
import { type ScanRow, toScan, toScanColumns } from './scan-columns.ts'

/** `queues` are those that this process can take jobs from. */
export function makeJobStore(deps: { pool: Pool; queues: string[] }): JobStore {
  // Anywhere in the circle: processes that begin at the same place would get in each other's way.
  let lastServed: string = randomUUID()

  const completeInBatch = makeGroupCommit({
    run: (items: Settling[]) => completeAll(deps.pool, items),
    mayBeOneItemsFault: (error) => /^(22|23|40)/.test(String((error as { code?: unknown }).code)),
    maxBatch: 256,
    maxWaiting: 20_000,
  })

  async function claimOnce(limit: number, leaseMs: number) {
    const { rows } = await runTransaction<ClaimedRow | { lease_token: null; more: boolean }>(
      deps.pool,
      [
        { name: 'requeue-jobs', text: requeueStatement },
        { name: 'claim-jobs', text: claimStatement, values: [limit, leaseMs, lastServed, deps.queues] },
      ],
      { settings: lazily },
    )
    const claimed = rows.filter((row): row is ClaimedRow => row.lease_token !== null)
    lastServed = claimed.at(-1)?.account_id ?? lastServed
    return { claimed, isMore: rows[0]?.more === true }
  }

  return {
    async claim(limit, leaseMs) {
      const claimed: ClaimedRow[] = []
      // Others who claim at the same time may have been quicker with some of those that we saw, and an account that has
      // many may have to fill up for those that have few.
      for (let tries = 0; tries < 4 && claimed.length < limit; tries++) {
        const more = await claimOnce(limit - claimed.length, leaseMs)
        claimed.push(...more.claimed)
        if (!more.isMore) break
      }
      return withScans(deps.pool, claimed)
    },

    async claimAbandoned(before, limit, leaseMs) {
      const statement = { name: 'claim-abandoned', text: claimAbandonedStatement, values: [before, limit, leaseMs] }
      const { rows } = await runTransaction<ClaimedRow>(deps.pool, [statement])
      return withScans(deps.pool, rows)
    },

    async extend(leases, leaseMs) {
      if (leases.length === 0) return []
      const values = [leases.map(({ scanId }) => scanId), leases.map(({ token }) => token), leaseMs]
      const { rows } = await runTransaction<{ scan_id: string; lease_token: string }>(
        deps.pool,
        [{ name: 'extend-leases', text: extendLeases, values }],
        { settings: lazily },
      )
      return rows.map((row) => ({ scanId: row.scan_id, token: row.lease_token }))
    },

    complete: (lease, completion) => completeInBatch({ lease, completion }),

    async release({ scanId, token }, { ms, counts }) {
      const values = [scanId, token, ms, counts ? 0 : 1]
      await runTransaction(deps.pool, [{ name: 'give-back-job', text: releaseJob, values }], { settings: lazily })
    },

    async countJobs() {
      const { rows } = await runTransaction<{ waiting: number; running: number; oldest_at: Date | null }>(deps.pool, [
        { name: 'count-jobs', text: countJobs },
      ])
      const { waiting = 0, running = 0, oldest_at = null } = rows[0] ?? {}
      return { waiting, running, oldestAt: oldest_at ?? undefined }
    },

    async listNeeded(keys) {
      const { rows } = await runTransaction<{ storage_key: string }>(deps.pool, [
        { name: 'list-needed', text: listNeeded, values: [keys] },
      ])
      return rows.map(({ storage_key }) => storage_key)
    },
  }
}

type Settling = { lease: Lease; completion: Completion }

async function completeAll(pool: Pool, items: Settling[]): Promise<boolean[]> {
  const asked = items.map(({ lease, completion: { scan, refunds, deliveryBody } }, i) => ({
    ...{ i, token: lease.token, refunds, delivery_id: v7(), delivery_body: deliveryBody },
    // How and where it was asked for is known, and stays.
    ...toScanColumns({ ...scan, id: lease.scanId, mode: 'async', region: '' }),
  }))
  const values = [JSON.stringify(asked), ...toEnds(asked.map(({ id }) => id))]
  const { rows } = await runTransaction<{ i: number }>(pool, [{ name: 'settle-jobs', text: completeStatement, values }])
  const completed = new Set(rows.map(({ i }) => i))
  return items.map((_, i) => completed.has(i))
}

const extendLeases = `
with held as materialized (
  select lease.scan_id
  from (select scan_id, token from unnest($1::uuid[], $2::uuid[]) as l (scan_id, token) order by scan_id) as lease
  cross join lateral (
    select from jobs where jobs.scan_id = lease.scan_id and jobs.lease_token = lease.token limit 1 for update
  ) as job
)
update jobs set held_until = now() + $3::integer * interval '1 millisecond'
where scan_id = any(array(select scan_id from held))
returning scan_id, lease_token
`

const releaseJob = `
update jobs set lease_token = null, attempts = attempts - $4::integer,
  held_until = case when $3::integer > 0 then now() + $3::integer * interval '1 millisecond' end
where scan_id = $1 and lease_token = $2
`

/** Counting 100,000 takes a tenth of a second; looking at a twentieth of them is near enough. */
const exactly = 10_000

/** The oldest is the first of some account, or one of those that are held, which are few. */
const countJobs = `
with recursive head (account_id, created_at) as (
  (select account_id, created_at from jobs where held_until is null order by account_id, position limit 1)
  union all
  select next.account_id, next.created_at
  from head cross join lateral (
    select account_id, created_at from jobs
    where held_until is null and jobs.account_id > head.account_id order by account_id, position limit 1
  ) as next
),
held as materialized (
  select created_at, lease_token is not null and held_until > now() as is_running from jobs
  -- Those of test keys rest as long as they were told to: nobody needs to hear of them.
  where held_until is not null and test_case is null
)
select case when listed < ${exactly} then listed
    else greatest(listed, (select count(*) * 20 from jobs tablesample system (5) where held_until is null)) end::integer
    + (select count(*) from held where not is_running)::integer as waiting,
  (select count(*) from held where is_running)::integer as running,
  least((select min(created_at) from head), (select min(created_at) from held)) as oldest_at
from (select count(*) as listed from (select from jobs where held_until is null limit ${exactly}) as first) as count
`

const listNeeded = `select storage_key from jobs where storage_key = any($1::text[])`

type ClaimedRow = SourceRow & {
  scan_id: string
  account_id: string
  attempts: number
  lease_token: string
  test_case: string | null
  callback_url: string | null
  flags_sexy: boolean | null
  /** Not all that wait were taken. */
  more: boolean
}

/** A scan changes only by the end of its job, and these have been claimed: it is no matter that time has passed. */
async function withScans(pool: Pool, claimed: ClaimedRow[]): Promise<ClaimedJob[]> {
  if (claimed.length === 0) return []
  const ids = claimed.map(({ scan_id }) => scan_id)
  const { rows } = await runTransaction<ScanRow>(pool, [
    { name: 'find-scans', text: findScansStatement, values: [ids, ...toEnds(ids)] },
  ])
  const scans = new Map(rows.map((row) => [row.id, toScan(row)]))
  return claimed.flatMap((row) => {
    const scan = scans.get(row.scan_id)
    return scan === undefined ? [] : [toClaimed(row, scan)]
  })
}

/** The first and the last, in the order of the database, which is that of their digits. */
function toEnds(ids: string[]): [string | undefined, string | undefined] {
  const sorted = ids.map((id) => id.toLowerCase()).sort()
  return [sorted[0], sorted.at(-1)]
}

const toClaimed = (row: ClaimedRow, scan: Scan): ClaimedJob => ({
  lease: { scanId: row.scan_id, token: row.lease_token },
  accountId: row.account_id,
  flagsSexy: row.flags_sexy ?? true,
  scan,
  attempt: row.attempts,
  source: row.test_case === null ? toSource(row) : { at: 'test', testCase: row.test_case },
  callbackUrl: row.callback_url,
})
