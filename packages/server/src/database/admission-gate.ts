import type { Pool } from 'pg'
import type { AdmissionAnswer, AdmissionCall, AdmissionGate, IdempotencyStore } from '../domain/ports/admission-gate.ts'
import { Problem } from '../domain/problem.ts'
import { retryBriefly } from '../domain/retry.ts'
import { admitAll, type BatchAnswer, type Counting, isPlainCharge } from './admission-batch.ts'
import { rollPeriod } from './balances.ts'
import { CommitUnknown, isDiskFull, isOutage } from './database-error.ts'
import { makeGroupCommit } from './group-commit.ts'
import { changeRows, findRow, runInPieces, toTimeAgo } from './query.ts'

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
  const charges = makeGroupCommit({ run: runBatch, maxBatch, toWaitMs: ({ mayWaitMs = 0 }) => mayWaitMs })
  const jobs = makeGroupCommit({ run: runBatch, maxBatch })

  function admitInBatch(call: AdmissionCall): Promise<BatchAnswer> {
    if (call.scan === undefined) return requests(call)
    return isPlainCharge(call) ? charges(call) : jobs(call)
  }

  /**
   * Repeats a charge whose commit was not answered. The gate never charges the same scan twice, so the repetition finds
   * out whether the scan was charged, or charges it now. A request that was counted in vain does no harm.
   */
  async function admitUntilKnown(call: AdmissionCall, error: unknown): Promise<BatchAnswer> {
    if (!(error instanceof CommitUnknown)) throw error
    deps.onOutage?.(error.cause)
    if (call.scan === undefined) throw error.cause
    try {
      return await retryBriefly(() => admitInBatch(call))
    } catch (last) {
      throw new Problem({ kind: 'outcome-unknown' }, { cause: last })
    }
  }

  async function admitAgain(call: AdmissionCall): Promise<AdmissionAnswer> {
    const answer = await admitOnce({ ...call, countsRequest: false })
    if (answer.outcome === 'period-over')
      throw new Error(`The period of account ${answer.accountId} does not roll forward`)
    return answer.outcome === 'doubtful' ? { ...answer, outcome: 'out-of-credit' } : answer
  }

  async function admitOnce(call: AdmissionCall): Promise<Exclude<BatchAnswer, { outcome: 'shared-rate' }>> {
    let first: BatchAnswer
    try {
      first = await admitInBatch(call)
    } catch (error) {
      first = await admitUntilKnown(call, error)
    }
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
