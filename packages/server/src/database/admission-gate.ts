import type { Pool, QueryConfig, QueryResult } from 'pg'
import { periodAt } from '../domain/accounts/account.ts'
import type { AdmissionGate, Answer, Ask, Caller } from '../domain/ports/admission-gate.ts'
import { Problem } from '../domain/problem.ts'
import { keepTrying } from '../domain/retry.ts'
import { chargeStatement, laterChargeStatement, requestStatement } from './admission-statement.ts'
import { CommitUnknown, isDiskFull, isOutage } from './database-error.ts'
import { enqueueStatement, laterEnqueueStatement } from './enqueue-statement.ts'
import { makeGroupCommit } from './group-commit.ts'
import { toJobColumns } from './job-columns.ts'
import { rollPeriod } from './roll-period.ts'
import { runTransaction } from './run-transaction.ts'
import { toScanColumns } from './scan-columns.ts'

/** What the statement says of one key of the batch. */
type Row = {
  k: number
  account_id: string
  is_test: boolean
  flags_sexy: boolean
  rate_requests: number
  rate_period_seconds: number
  used_before: number
  granted: number
  resets_at: Date
  credit_limit: number
  /** Before the charges of this batch. */
  credit_remaining: number
  period_over: boolean
  /** The scans that found the period current, and the account's balance after each: below zero means not charged. */
  charged?: number[] | null
  balances?: number[] | null
  repeated?: { i: number; scan_id: string; fingerprint: string }[] | null
  /** Somebody else took an idempotency key that a credit was put aside for. */
  raced?: boolean
  at: Date
}

/** An ask with what is needed to find its share of the row: its number, and its place among its key's requests. */
type Numbered = { ask: Ask; i: number; nth: number | null }

type BatchAnswer =
  | Answer
  | { outcome: 'period-over'; accountId: string; at: Date; caller: Caller }
  /** Without credit, or so it seems: the same key, or the credit that was put aside, may be there by now. */
  | { outcome: 'doubtful'; caller: Caller }

type Deps = {
  pool: Pool
  observeBatch?(size: number): void
  /** In a region whose keys come from another: true when there are keys that could not be answered before. */
  openBalances?: (() => Promise<boolean>) | undefined
  /** While nobody can be reached it is not tried: callers learn so at once, and the database comes back in peace. */
  isAway?(): boolean
  onOutage?(error: unknown): void
}

const retryAfterSeconds = 5

export function makeAdmissionGate(deps: Deps): AdmissionGate {
  const makeBatcher = () =>
    makeGroupCommit({
      run(asks: Ask[]) {
        deps.observeBatch?.(asks.length)
        return askAll(deps.pool, asks)
      },
      // Values that do not fit or break a constraint, and deadlocks: classes 22, 23 and 40 of SQLSTATE.
      mayBeOneItemsFault: (error) => /^(22|23|40)/.test(String((error as { code?: unknown }).code)),
      maxBatch: 512,
      maxWaiting: 20_000,
    })
  // Apart, because a charge waits for the disk and a request need not.
  const requests = makeBatcher()
  const charges = makeBatcher()
  // Apart, because their statement does more, and charges alone need not wait for it.
  const jobs = makeBatcher()

  function askInBatch(ask: Ask): Promise<BatchAnswer> {
    if (ask.scan === undefined) return requests(ask)
    return isPlain(ask) ? charges(ask) : jobs(ask)
  }

  async function askAgain(ask: Ask): Promise<Answer> {
    const again = await askSurely({ ...ask, countsRequest: false })
    if (again.outcome === 'period-over')
      throw new Error(`The period of account ${again.accountId} does not roll forward`)
    return again.outcome === 'doubtful' ? { ...again, outcome: 'out-of-credit' } : again
  }

  /**
   * A charge whose commit was not answered is asked for again: the same scan is never charged twice, so this finds out
   * what became of it, or does it now. A request that was counted in vain harms nobody.
   */
  async function askSurely(ask: Ask): Promise<BatchAnswer> {
    try {
      return await askInBatch(ask)
    } catch (error) {
      if (!(error instanceof CommitUnknown)) throw error
      deps.onOutage?.(error.cause)
      if (ask.scan === undefined) throw error.cause
      try {
        return await keepTrying(() => askInBatch(ask))
      } catch (last) {
        throw new Problem({ kind: 'outcome-unknown' }, { cause: last })
      }
    }
  }

  /** When it is certain that nothing was charged, the caller is told so. */
  function toRefusal(error: unknown): unknown {
    if (error instanceof Problem || !isOutage(error)) return error
    deps.onOutage?.(error)
    const kind = isDiskFull(error) ? 'storage-full' : 'unavailable'
    return new Problem({ kind, retryAfterSeconds }, { cause: error })
  }

  async function answer(ask: Ask): Promise<Answer> {
    let answer = await askSurely(ask)
    if (answer.outcome === 'unknown-key' && (await deps.openBalances?.())) answer = await askSurely(ask)
    if (answer.outcome !== 'period-over' && answer.outcome !== 'doubtful') return answer
    // Both are rare, so they have no place in the statement. The request is counted already: only the rest is asked
    // again.
    if (answer.outcome === 'period-over') {
      await rollPeriod(deps.pool, answer.accountId, (anchor) => periodAt(anchor, answer.at))
    }
    const again = await askAgain(ask)
    if (again.outcome === 'unknown-key' || !ask.countsRequest) return again
    const { requestsRemaining, resetsAt } = answer.caller
    return { ...again, caller: { ...again.caller, requestsRemaining, resetsAt } }
  }

  return {
    async ask(ask) {
      if (deps.isAway?.() === true) throw new Problem({ kind: 'unavailable', retryAfterSeconds })
      try {
        return await answer(ask)
      } catch (error) {
        throw toRefusal(error)
      }
    },
  }
}

const isPlain = (ask: Ask) => ask.job === undefined && ask.idempotency === undefined

async function askAll(pool: Pool, asks: Ask[]): Promise<BatchAnswer[]> {
  const groups = groupByKey(asks)
  const { rows } = await runStatement(pool, groups, asks.every(isPlain))
  const answers: BatchAnswer[] = new Array(asks.length).fill({ outcome: 'unknown-key' })
  for (const row of rows) {
    for (const member of groups[row.k - 1]?.members ?? []) answers[member.i] = toAnswer(row, member)
  }
  return answers
}

/** An answer that does not come is not waited for longer than a caller would. */
const answerMs = 10_000

const run = (pool: Pool, statement: QueryConfig) => runTransaction<Row>(pool, [statement], { answerMs })

function runStatement(pool: Pool, groups: Group[], arePlain: boolean): Promise<QueryResult<Row>> {
  const keys = [groups.map(({ digest }) => digest), groups.map(({ wanted }) => wanted)]
  const countsRequests = groups.some(({ wanted }) => wanted > 0)
  const sealed: Buffer[] = []
  const toRow = toScanRows(sealed)
  const scans = groups.flatMap(({ members }, k) => members.flatMap((member) => toRow(member, k + 1)))
  if (scans.length === 0) return run(pool, { name: 'take-requests', text: requestStatement, values: keys })
  const values: unknown[] = [...keys, JSON.stringify(scans)]
  if (arePlain) {
    return countsRequests
      ? run(pool, { name: 'charge-scans', text: chargeStatement, values })
      : run(pool, { name: 'charge-later', text: laterChargeStatement, values })
  }
  values.push(Buffer.concat(sealed))
  return runTransaction(pool, [
    countsRequests
      ? { name: 'enqueue-scans', text: enqueueStatement, values }
      : { name: 'enqueue-later', text: laterEnqueueStatement, values },
  ])
}

type Group = { digest: string; wanted: number; members: Numbered[] }

function groupByKey(asks: Ask[]): Group[] {
  const groups = new Map<string, Group>()
  asks.forEach((ask, i) => {
    const digest = ask.keyDigest
    let group = groups.get(digest)
    if (group === undefined) {
      group = { digest, wanted: 0, members: [] }
      groups.set(digest, group)
    }
    if (ask.countsRequest) group.wanted++
    group.members.push({ ask, i, nth: ask.countsRequest ? group.wanted : null })
  })
  return [...groups.values()]
}

/** The contents of jobs go into `sealed`. */
function toScanRows(sealed: Buffer[]) {
  let sealedBytes = 0
  return ({ ask: { scan, job, idempotency, flagsSexy }, i, nth }: Numbered, k: number) => {
    if (scan === undefined) return []
    const row = { i, k, nth, flags_sexy: flagsSexy, ...idempotency, ...toScanColumns(scan) }
    if (job === undefined) return row
    const columns = toJobColumns(job, sealedBytes)
    if (job.source.at === 'row') {
      sealed.push(job.source.sealed)
      sealedBytes += job.source.sealed.length
    }
    return { ...row, ...columns }
  }
}

function toAnswer(row: Row, { ask, i, nth }: Numbered): BatchAnswer {
  const charge = row.charged?.indexOf(i) ?? -1
  const balance = charge === -1 ? undefined : row.balances?.[charge]
  const taken = nth ?? row.granted
  const caller: Caller = {
    keyDigest: ask.keyDigest,
    accountId: row.account_id,
    isTest: row.is_test,
    flagsSexy: row.flags_sexy,
    rate: { requests: row.rate_requests, periodSeconds: row.rate_period_seconds },
    creditLimit: row.credit_limit,
    creditRemaining: Math.max(0, balance ?? row.credit_remaining),
    requestsRemaining: Math.max(0, row.rate_requests - row.used_before - taken),
    resetsAt: row.resets_at,
  }
  if (nth !== null && nth > row.granted) {
    const waitMs = row.resets_at.getTime() - row.at.getTime()
    return { outcome: 'rate-limited', caller, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
  }
  if (row.period_over) return { outcome: 'period-over', accountId: row.account_id, at: row.at, caller }
  if (ask.flagsSexy !== undefined && ask.flagsSexy !== row.flags_sexy) return { outcome: 'changed', caller }
  const repeat = row.repeated?.find((other) => other.i === i)
  if (repeat !== undefined) {
    return { outcome: 'repeated', caller, scanId: repeat.scan_id, fingerprint: repeat.fingerprint }
  }
  // A scan without a charge was recorded before: asking again is answered as the first time.
  const isUnpaid = ask.scan !== undefined && balance !== undefined && balance < 0
  if (!isUnpaid) return { outcome: 'admitted', caller }
  const isDoubtful = ask.idempotency !== undefined || row.raced === true
  return { outcome: isDoubtful ? 'doubtful' : 'out-of-credit', caller }
}
