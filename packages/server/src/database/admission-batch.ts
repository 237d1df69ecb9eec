import type { Pool } from 'pg'
import type { Rate } from '../domain/accounts/account.ts'
import type { AdmissionAnswer, AdmissionCall, Caller } from '../domain/ports/admission-gate.ts'
import type { NewScan } from '../domain/scans/scan.ts'
import { admissionStatements, chargeOneKey } from './admission-statements.ts'
import { isLeftToOthers } from './database-error.ts'
import { runStatement } from './query.ts'
import { newSealedContents, toJobRecord, toScanRecord } from './scan-store.ts'

/** The row that a statement returns for one key of the batch. */
type KeyRow = Rate & {
  /** Position of the key in the batch, from 1 on. */
  k: number
  accountId: string
  isTest: boolean
  restrictions: string
  flagsSexy: boolean
  usedBefore: number
  granted: number
  /** Whether the statement counted no request, because the rate of the account must count as well. */
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

export type BatchAnswer =
  | AdmissionAnswer
  | { outcome: 'period-over'; accountId: string; caller: Caller }
  /** There was no credit, but a concurrent call may have used the same idempotency key or freed a reserved credit. */
  | { outcome: 'doubtful'; caller: Caller }
  /** The plan has a rate for accounts, which this statement does not count: it has counted and charged nothing. */
  | { outcome: 'shared-rate' }

/** Time limit of the statements that a synchronous caller waits for. */
const statementTimeoutMs = 10_000

/** Whether a call charges a scan, or counts a request, without a job and without an idempotency key. */
export const isPlainCharge = (call: AdmissionCall) => call.job === undefined && call.idempotency === undefined

export type Counting = 'byKey' | 'inAccounts'

/** Admits the calls of one batch, in one transaction. */
export async function admitAll(pool: Pool, calls: AdmissionCall[], counting: Counting): Promise<BatchAnswer[]> {
  const groups = groupByKey(calls)
  const [only, ...others] = groups
  const isSimple = only !== undefined && others.length === 0 && isSimpleGroup(only)
  const simpleRow = isSimple ? await chargeOneGroup(pool, only) : undefined
  const arePlainCharges = calls.every(isPlainCharge)
  const rows =
    simpleRow === undefined ? await runBatchStatement(pool, groups, { arePlainCharges, counting }) : [simpleRow]
  const answers: BatchAnswer[] = new Array(calls.length).fill({ outcome: 'unknown-key' })
  for (const row of rows) {
    for (const member of groups[row.k - 1]?.members ?? []) answers[member.i] = toAnswer(row, member)
  }
  return answers
}

/** Whether `chargeOneKey` can charge the calls of a key: they are alike, and none has an idempotency key. */
function isSimpleGroup({ wanted, members }: Group): boolean {
  const first = members[0]?.call
  return (
    (wanted === 0 || wanted === members.length) &&
    members.every(
      ({ call }) =>
        call.scan !== undefined &&
        call.idempotency === undefined &&
        call.flagsSexy === first?.flagsSexy &&
        call.restrictions === first?.restrictions &&
        (call.job === undefined) === (first?.job === undefined),
    )
  )
}

/** Charges the scans of one key with `chargeOneKey`. Returns undefined when that statement left them to the others. */
async function chargeOneGroup(pool: Pool, { digest, wanted, members }: Group): Promise<KeyRow | undefined> {
  const contents = newSealedContents()
  const scans = members.map(({ call: { scan } }, index) => ({ n: index + 1, ...toScanRecord(scan as NewScan) }))
  const jobs = members.flatMap(({ call: { scan, job } }) =>
    job === undefined ? [] : { id: scan?.id, ...toJobRecord(job, contents) },
  )
  const first = members[0]?.call
  const withJobs = jobs.length > 0
  const values = [
    Buffer.from(digest, 'hex'),
    wanted,
    scans.length,
    JSON.stringify(scans),
    first?.flagsSexy ?? null,
    first?.restrictions ?? null,
    withJobs ? JSON.stringify(jobs) : null,
    withJobs ? contents.toParameter() : null,
  ]
  const row = await runStatement<OneKeyRow>(pool, chargeOneKey, values, withJobs ? undefined : statementTimeoutMs).then(
    ({ rows }) => rows[0],
    (error: unknown) => {
      if (isLeftToOthers(error)) return undefined
      throw error
    },
  )
  if (row === undefined || row.accountId === null) return undefined
  const creditRemaining = row.creditRemaining + scans.length
  return {
    ...row,
    k: 1,
    isTest: false,
    isShared: false,
    isPeriodOver: false,
    granted: wanted,
    creditRemaining,
    charged: members.map(({ i }) => i),
    balances: members.map((_, index) => creditRemaining - index - 1),
  }
}

/** The row of `chargeOneKey`; all fields but `now` are null when it changed nothing. */
type OneKeyRow = Pick<
  KeyRow,
  | 'accountId'
  | 'restrictions'
  | 'flagsSexy'
  | 'requests'
  | 'periodSeconds'
  | 'usedBefore'
  | 'resetsAt'
  | 'creditLimit'
  | 'creditRemaining'
  | 'now'
> & { accountId: string | null }

async function runBatchStatement(
  pool: Pool,
  groups: Group[],
  { arePlainCharges, counting }: { arePlainCharges: boolean; counting: Counting },
): Promise<KeyRow[]> {
  const { count, countAndCharge, charge, countAndEnqueue, enqueue } = admissionStatements
  const contents = newSealedContents()
  const keys = [groups.map(({ digest }) => digest), groups.map(({ wanted }) => wanted)]
  const scans = groups.flatMap(({ members }, index) =>
    members.flatMap(({ call: { scan, job, idempotency, flagsSexy, restrictions }, i, nth }) => {
      if (scan === undefined) return []
      const jobRecord = job && toJobRecord(job, contents)
      const expected = { flags_sexy: flagsSexy, restrictions }
      return { i, k: index + 1, nth, ...expected, ...idempotency, ...toScanRecord(scan), ...jobRecord }
    }),
  )
  const countsRequests = groups.some(({ wanted }) => wanted > 0)
  const run = async (...args: Parameters<typeof runStatement>) => (await runStatement<KeyRow>(...args)).rows
  if (scans.length === 0) return run(pool, count[counting], keys, statementTimeoutMs)
  const ids = scans.map(({ id }) => id).sort()
  const values = [...keys, JSON.stringify(scans), ids[0], ids.at(-1)]
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
    restrictions: row.restrictions,
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
  const isSexyChanged = call.flagsSexy !== undefined && call.flagsSexy !== row.flagsSexy
  const isKeyChanged = call.restrictions !== undefined && call.restrictions !== row.restrictions
  if (isSexyChanged || isKeyChanged) return { outcome: 'changed', caller }
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
