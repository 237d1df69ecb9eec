import type { Pool } from 'pg'
import type { Rate } from '../domain/accounts/account.ts'
import type {
  AdmissionAnswer,
  AdmissionCall,
  AdmissionGate,
  Caller,
  IdempotencyStore,
} from '../domain/ports/admission-gate.ts'
import { Problem } from '../domain/problem.ts'
import { retryBriefly } from '../domain/retry.ts'
import { admissionStatements } from './admission-statements.ts'
import { rollPeriod } from './balances.ts'
import { CommitUnknown, isDiskFull, isOutage } from './database-error.ts'
import { makeGroupCommit } from './group-commit.ts'
import { changeRows, findRow, runInPieces, runStatement, toTimeAgo } from './query.ts'
import { newSealedContents, toJobRecord, toScanRecord } from './scan-records.ts'

/** The row that a statement returns for one key of the batch. */
type KeyRow = Rate & {
  /** Position of the key in the batch, from 1 on. */
  k: number
  accountId: string
  isTest: boolean
  flagsSexy: boolean
  usedBefore: number
  granted: number
  /** Nothing was counted, because the rate of the account must count as well. */
  isShared: boolean
  resetsAt: Date
  creditLimit: number
  /** Credits before the charges of this batch. */
  creditRemaining: number
  isPeriodOver: boolean
  /** Numbers of the scans whose period is current, and the balance after each: below zero means not charged. */
  charged?: number[] | null
  balances?: number[] | null
  repeated?: { i: number; scanId: string; fingerprint: string }[] | null
  /** Whether a concurrent call took an idempotency key that a credit was reserved for. */
  isRaced?: boolean
  now: Date
}

/** A call with its number in the batch and its position among the counted requests of its key. */
type NumberedCall = { call: AdmissionCall; i: number; nth: number | null }

type BatchAnswer =
  | AdmissionAnswer
  | { outcome: 'period-over'; accountId: string; caller: Caller }
  /** There was no credit, but a concurrent call may have used the same idempotency key or freed a reserved credit. */
  | { outcome: 'doubtful'; caller: Caller }
  /** Nothing was counted or charged: the plan has a rate for accounts, which this statement does not count. */
  | { outcome: 'shared-rate' }

type Deps = {
  pool: Pool
  observeBatch?(size: number): void
  /** For a region whose keys are replicated from another: true when this opened balances that were missing. */
  openBalances?: (() => Promise<boolean>) | undefined
  /**
   * While the database is unavailable the gate rejects calls at once: they do not wait, and do not slow its restart.
   */
  isUnavailable?(): boolean
  onOutage?(error: unknown): void
}

const retryAfterSeconds = 5
const maxBatch = 512
/** Time limit of the statements that a synchronous caller waits for. */
const statementTimeoutMs = 10_000

export function makeAdmissionGate(deps: Deps): AdmissionGate {
  // Counting in accounts makes every batch slower, so it begins with the first account whose plan has such a rate.
  let counting: Counting = 'byKey'
  const runBatch = (calls: AdmissionCall[]) => {
    deps.observeBatch?.(calls.length)
    return admitAll(deps.pool, calls, counting)
  }
  // Three batches, so that none waits for work that it does not need: requests do not wait for the disk as charges do,
  // and charges do not wait for the longer statement of jobs and idempotency keys.
  const requests = makeGroupCommit({ run: runBatch, maxBatch })
  const charges = makeGroupCommit({ run: runBatch, maxBatch })
  const jobs = makeGroupCommit({ run: runBatch, maxBatch })

  function admitInBatch(call: AdmissionCall): Promise<BatchAnswer> {
    if (call.scan === undefined) return requests(call)
    return isPlainCharge(call) ? charges(call) : jobs(call)
  }

  /**
   * Repeats a charge whose commit was not answered. The gate never charges the same scan twice, so the repetition finds
   * out whether the scan was charged, or charges it now. A request that was counted in vain does no harm.
   */
  async function admitUntilKnown(call: AdmissionCall): Promise<BatchAnswer> {
    try {
      return await admitInBatch(call)
    } catch (error) {
      if (!(error instanceof CommitUnknown)) throw error
      deps.onOutage?.(error.cause)
      if (call.scan === undefined) throw error.cause
      try {
        return await retryBriefly(() => admitInBatch(call))
      } catch (last) {
        throw new Problem({ kind: 'outcome-unknown' }, { cause: last })
      }
    }
  }

  async function admitAgain(call: AdmissionCall): Promise<AdmissionAnswer> {
    const answer = await admitOnce({ ...call, countsRequest: false })
    if (answer.outcome === 'period-over')
      throw new Error(`The period of account ${answer.accountId} does not roll forward`)
    return answer.outcome === 'doubtful' ? { ...answer, outcome: 'out-of-credit' } : answer
  }

  async function admitOnce(call: AdmissionCall): Promise<Exclude<BatchAnswer, { outcome: 'shared-rate' }>> {
    const first = await admitUntilKnown(call)
    if (first.outcome !== 'shared-rate') return first
    counting = 'inAccounts'
    return admitOnce(call)
  }

  async function answer(call: AdmissionCall): Promise<AdmissionAnswer> {
    let first = await admitOnce(call)
    if (first.outcome === 'unknown-key' && (await deps.openBalances?.())) first = await admitOnce(call)
    if (first.outcome !== 'period-over' && first.outcome !== 'doubtful') return first
    // Both outcomes are rare, so the statements do not handle them. The request is counted: only the scan is repeated.
    if (first.outcome === 'period-over') await rollPeriod(deps.pool, first.accountId)
    const second = await admitAgain(call)
    if (second.outcome === 'unknown-key' || !call.countsRequest) return second
    const { requestsRemaining, resetsAt } = first.caller
    return { ...second, caller: { ...second.caller, requestsRemaining, resetsAt } }
  }

  /** An outage becomes a refusal: it is certain that nothing was charged, so the client may retry. */
  function toRefusal(error: unknown): unknown {
    if (error instanceof Problem || !isOutage(error)) return error
    deps.onOutage?.(error)
    const kind = isDiskFull(error) ? 'storage-full' : 'unavailable'
    return new Problem({ kind, retryAfterSeconds }, { cause: error })
  }

  return {
    async admit(call) {
      if (deps.isUnavailable?.() === true) throw new Problem({ kind: 'unavailable', retryAfterSeconds })
      try {
        return await answer(call)
      } catch (error) {
        throw toRefusal(error)
      }
    },
  }
}

const isPlainCharge = (call: AdmissionCall) => call.job === undefined && call.idempotency === undefined

type Counting = 'byKey' | 'inAccounts'

async function admitAll(pool: Pool, calls: AdmissionCall[], counting: Counting): Promise<BatchAnswer[]> {
  const groups = groupByKey(calls)
  const rows = await runBatchStatement(pool, groups, { arePlainCharges: calls.every(isPlainCharge), counting })
  const answers: BatchAnswer[] = new Array(calls.length).fill({ outcome: 'unknown-key' })
  for (const row of rows) {
    for (const member of groups[row.k - 1]?.members ?? []) answers[member.i] = toAnswer(row, member)
  }
  return answers
}

async function runBatchStatement(
  pool: Pool,
  groups: Group[],
  { arePlainCharges, counting }: { arePlainCharges: boolean; counting: Counting },
): Promise<KeyRow[]> {
  const { count, countAndCharge, charge, countAndEnqueue, enqueue } = admissionStatements
  const contents = newSealedContents()
  const keys = [groups.map(({ digest }) => digest), groups.map(({ wanted }) => wanted)]
  const scans = groups.flatMap(({ members }, index) =>
    members.flatMap(({ call: { scan, job, idempotency, flagsSexy }, i, nth }) => {
      if (scan === undefined) return []
      const jobRecord = job && toJobRecord(job, contents)
      return { i, k: index + 1, nth, flags_sexy: flagsSexy, ...idempotency, ...toScanRecord(scan), ...jobRecord }
    }),
  )
  const countsRequests = groups.some(({ wanted }) => wanted > 0)
  const values = [...keys, JSON.stringify(scans)]
  const run = async (...args: Parameters<typeof runStatement>) => (await runStatement<KeyRow>(...args)).rows
  if (scans.length === 0) return run(pool, count[counting], keys, statementTimeoutMs)
  if (arePlainCharges) {
    return run(pool, countsRequests ? countAndCharge[counting] : charge, values, statementTimeoutMs)
  }
  const statement = countsRequests ? countAndEnqueue[counting] : enqueue
  return run(pool, statement, [...values, contents.toParameter()])
}

type Group = { digest: string; wanted: number; members: NumberedCall[] }

function groupByKey(calls: AdmissionCall[]): Group[] {
  const groups = new Map<string, Group>()
  calls.forEach((call, i) => {
    const digest = call.keyDigest
    let group = groups.get(digest)
    if (group === undefined) {
      group = { digest, wanted: 0, members: [] }
      groups.set(digest, group)
    }
    if (call.countsRequest) group.wanted++
    group.members.push({ call, i, nth: call.countsRequest ? group.wanted : null })
  })
  return [...groups.values()]
}

function toAnswer(row: KeyRow, { call, i, nth }: NumberedCall): BatchAnswer {
  if (row.isShared && nth !== null) return { outcome: 'shared-rate' }
  const index = row.charged?.indexOf(i) ?? -1
  const balance = index === -1 ? undefined : row.balances?.[index]
  const caller: Caller = {
    keyDigest: call.keyDigest,
    accountId: row.accountId,
    isTest: row.isTest,
    flagsSexy: row.flagsSexy,
    rate: { requests: row.requests, periodSeconds: row.periodSeconds },
    creditLimit: row.creditLimit,
    creditRemaining: Math.max(0, balance ?? row.creditRemaining),
    requestsRemaining: Math.max(0, row.requests - row.usedBefore - (nth ?? row.granted)),
    resetsAt: row.resetsAt,
  }
  if (nth !== null && nth > row.granted) {
    const waitMs = row.resetsAt.getTime() - row.now.getTime()
    return { outcome: 'rate-limited', caller, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
  }
  if (row.isPeriodOver) return { outcome: 'period-over', accountId: row.accountId, caller }
  if (call.flagsSexy !== undefined && call.flagsSexy !== row.flagsSexy) return { outcome: 'changed', caller }
  const repeat = row.repeated?.find((other) => other.i === i)
  if (repeat !== undefined) {
    return { outcome: 'repeated', caller, scanId: repeat.scanId, fingerprint: repeat.fingerprint }
  }
  // A scan without a balance was recorded by an earlier call, which this one repeats: the answer is the same.
  const isUnpaid = call.scan !== undefined && balance !== undefined && balance < 0
  if (!isUnpaid) return { outcome: 'admitted', caller }
  const isDoubtful = call.idempotency !== undefined || row.isRaced === true
  return { outcome: isDoubtful ? 'doubtful' : 'out-of-credit', caller }
}

/** Reads and deletes idempotency keys. Only the gate inserts them, with the scan. */
export function makeIdempotencyStore({ pool }: { pool: Pool }): IdempotencyStore {
  return {
    findRepeat: (accountId, operation, key) => findRow(pool, findRepeat, [accountId, operation, key]),
    deleteIdempotencyKeys: (ageMs) => runInPieces(deletePieceSize, () => changeRows(pool, deleteOldKeys, [ageMs])),
  }
}

const findRepeat = `
-- name: find-repeat
select scan_id as "scanId", encode(fingerprint, 'hex') as fingerprint from idempotency_keys
where account_id = $1 and operation = $2 and key = $3
`

const deletePieceSize = 5000

/** Skips locked keys: they are in use now, and the next sweep finds them. */
const deleteOldKeys = `
delete from idempotency_keys where ctid = any(array(
  select ctid from idempotency_keys where created_at < ${toTimeAgo('$1')} limit ${deletePieceSize} for update skip locked
))
`
