import type { Pool } from 'pg'
import { periodAt } from '../domain/accounts/period.ts'
import type { AdmissionGate, Answer, Ask, Caller } from '../domain/ports/admission-gate.ts'
import { chargeStatement, laterChargeStatement, requestStatement } from './admission-statement.ts'
import { makeGroupCommit } from './group-commit.ts'
import { rollPeriod } from './roll-period.ts'
import { toScanColumns } from './scan-columns.ts'

/** What the statement says of one key of the batch. */
type Row = {
  k: number
  account_id: string
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
  at: Date
}

/** An ask with what is needed to find its share of the row: its number, and its place among its key's requests. */
type Numbered = { ask: Ask; i: number; nth: number | null }

type Settled = Answer | { outcome: 'period-over'; accountId: string; at: Date; caller: Caller }

export function makeAdmissionGate(deps: { pool: Pool; observeBatch?(size: number): void }): AdmissionGate {
  const makeLane = () =>
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
  const requests = makeLane()
  const charges = makeLane()
  const askInBatch = (ask: Ask) => (ask.scan === undefined ? requests(ask) : charges(ask))

  return {
    async ask(ask) {
      const answer = await askInBatch(ask)
      if (answer.outcome !== 'period-over') return answer
      // Rare, so it has no place in the statement. The request is counted already: only the rest is asked again.
      await rollPeriod(deps.pool, answer.accountId, (anchor) => periodAt(anchor, answer.at))
      const again = await askInBatch({ ...ask, takesRequest: false })
      if (again.outcome === 'period-over')
        throw new Error(`The period of account ${again.accountId} does not roll forward`)
      if (again.outcome === 'unknown-key' || !ask.takesRequest) return again
      const { requestsRemaining, resetsAt } = answer.caller
      return { ...again, caller: { ...again.caller, requestsRemaining, resetsAt } }
    },
  }
}

async function askAll(pool: Pool, asks: Ask[]): Promise<Settled[]> {
  const groups = groupByKey(asks)
  const scans = groups.flatMap(({ members }, k) => members.flatMap((member) => toScanRow(member, k + 1)))
  const keys = [groups.map(({ digest }) => digest), groups.map(({ wanted }) => wanted)]
  const { rows } = await pool.query<Row>(
    scans.length === 0
      ? { name: 'take-requests', text: requestStatement, values: keys }
      : { ...toChargeStatement(groups), values: [...keys, JSON.stringify(scans)] },
  )
  const answers: Settled[] = new Array(asks.length).fill({ outcome: 'unknown-key' })
  for (const row of rows) {
    for (const member of groups[row.k - 1]?.members ?? []) answers[member.i] = toAnswer(row, member)
  }
  return answers
}

const toChargeStatement = (groups: { wanted: number }[]) =>
  groups.some(({ wanted }) => wanted > 0)
    ? { name: 'charge-scans', text: chargeStatement }
    : { name: 'charge-later', text: laterChargeStatement }

function groupByKey(asks: Ask[]) {
  const groups = new Map<string, { digest: string; wanted: number; members: Numbered[] }>()
  asks.forEach((ask, i) => {
    const digest = ask.keyDigest
    let group = groups.get(digest)
    if (group === undefined) {
      group = { digest, wanted: 0, members: [] }
      groups.set(digest, group)
    }
    if (ask.takesRequest) group.wanted++
    group.members.push({ ask, i, nth: ask.takesRequest ? group.wanted : null })
  })
  return [...groups.values()]
}

function toScanRow({ ask: { scan }, i, nth }: Numbered, k: number) {
  if (scan === undefined) return []
  return { i, k, nth, ...toScanColumns(scan) }
}

function toAnswer(row: Row, { ask, i, nth }: Numbered): Settled {
  const charge = row.charged?.indexOf(i) ?? -1
  const balance = charge === -1 ? undefined : row.balances?.[charge]
  const taken = nth ?? row.granted
  const caller: Caller = {
    keyDigest: ask.keyDigest,
    accountId: row.account_id,
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
  // A scan without a charge was recorded before: asking again is answered as the first time.
  const unpaid = ask.scan !== undefined && balance !== undefined && balance < 0
  return { outcome: unpaid ? 'out-of-credit' : 'admitted', caller }
}
