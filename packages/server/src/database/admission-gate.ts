import type { Pool } from 'pg'
import { periodAt } from '../domain/accounts/period.ts'
import type { AdmissionGate, Answer, Ask, Caller } from '../domain/ports/admission-gate.ts'
import { admissionStatement } from './admission-statement.ts'
import { makeGroupCommit } from './group-commit.ts'
import { rollPeriod } from './roll-period.ts'

type Row = {
  n: number
  account_id: string
  rate_requests: number
  rate_period_seconds: number
  credit_limit: number
  credit_remaining: number
  requests_remaining: number
  resets_at: Date
  outcome: 'admitted' | 'rate-limited' | 'period-over' | 'out-of-credit'
  at: Date
}

export function makeAdmissionGate(deps: { pool: Pool; observeBatch?(size: number): void }): AdmissionGate {
  const askInBatch = makeGroupCommit({
    run(asks: Ask[]) {
      deps.observeBatch?.(asks.length)
      return askAll(deps.pool, asks)
    },
    maxBatch: 512,
    maxWaiting: 20_000,
  })

  return {
    async ask(ask) {
      let row = await askInBatch(ask)
      if (row?.outcome === 'period-over') {
        // Rare, so it is not worth a place in the statement. The request is counted already: only the rest is asked again.
        await rollPeriod(deps.pool, row.account_id, (anchor) => periodAt(anchor, (row as Row).at))
        const { requests_remaining, resets_at } = row
        row = await askInBatch({ ...ask, takesRequest: false })
        if (row !== undefined) row = { ...row, ...(ask.takesRequest ? { requests_remaining, resets_at } : {}) }
      }
      return toAnswer(row)
    },
  }
}

async function askAll(pool: Pool, asks: Ask[]): Promise<(Row | undefined)[]> {
  const scans = asks.flatMap(({ scan }, i) =>
    scan === undefined
      ? []
      : {
          n: i + 1,
          id: scan.id,
          kind: scan.kind,
          mode: scan.mode,
          region: scan.region,
          content_length: scan.contentLength,
          content_type: scan.contentType,
          content_name: scan.contentName,
          metadata: scan.metadata,
        },
  )
  const { rows } = await pool.query<Row>({
    name: 'admission',
    text: admissionStatement,
    values: [asks.map((ask) => ask.keyDigest), asks.map((ask) => ask.takesRequest), JSON.stringify(scans)],
  })
  const answers: (Row | undefined)[] = new Array(asks.length).fill(undefined)
  for (const row of rows) answers[row.n - 1] = row
  return answers
}

function toAnswer(row: Row | undefined): Answer {
  if (row === undefined) return { outcome: 'unknown-key' }
  const caller: Caller = {
    accountId: row.account_id,
    rate: { requests: row.rate_requests, periodSeconds: row.rate_period_seconds },
    creditLimit: row.credit_limit,
    creditRemaining: row.credit_remaining,
    requestsRemaining: row.requests_remaining,
    resetsAt: row.resets_at,
  }
  switch (row.outcome) {
    case 'rate-limited': {
      const waitMs = row.resets_at.getTime() - row.at.getTime()
      return { outcome: 'rate-limited', caller, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
    }
    case 'out-of-credit':
      return { outcome: 'out-of-credit', caller }
    case 'period-over':
      // Rolled a moment ago and over again: only a clock that jumps by a month does that.
      throw new Error(`The billing period of account ${row.account_id} does not roll forward`)
    case 'admitted':
      return { outcome: 'admitted', caller }
  }
}
