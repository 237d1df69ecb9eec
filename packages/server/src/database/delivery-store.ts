import type { Pool } from 'pg'
import type {
  Attempt,
  ClaimedDelivery,
  Delivery,
  DeliveryStore,
  NextDeliveryState,
} from '../domain/ports/delivery-store.ts'
import { makeDeliveryAdmin } from './delivery-admin.ts'
import { recordAttemptsStatement } from './delivery-attempt-statement.ts'
import { claimDeliveriesStatement, deliveryLock, eachHost, parkStatement } from './delivery-claim-statement.ts'
import { makeGroupCommit } from './group-commit.ts'
import { lazily, runTransaction } from './run-transaction.ts'

export function makeDeliveryStore(deps: { pool: Pool }): DeliveryStore {
  let lastServed = ''

  const completeInBatch = makeGroupCommit({
    run: (items: Settling[]) => completeAll(deps.pool, items),
    mayBeOneItemsFault: (error) => /^(22|23|40)/.test(String((error as { code?: unknown }).code)),
    maxBatch: 256,
    maxWaiting: 20_000,
  })

  return {
    ...makeDeliveryAdmin(deps),

    async claim({ limit, perHost, leaseMs }) {
      const { rows } = await runTransaction<ClaimedRow>(
        deps.pool,
        [
          { name: 'park-deliveries', text: parkStatement },
          { name: 'claim-deliveries', text: claimDeliveriesStatement, values: [limit, perHost, leaseMs, lastServed] },
        ],
        { settings: lazily, lock: deliveryLock },
      )
      lastServed = rows.at(-1)?.host ?? lastServed
      return rows.map(toClaimed)
    },

    recordAttempt: (claimed, attempt, outcome, pauseAfterMs) =>
      completeInBatch({ id: claimed.id, token: claimed.token, attempt, outcome, pauseAfterMs }),

    async findNextDue() {
      const { rows } = await runTransaction<{ next_at: Date | null }>(deps.pool, [
        { name: 'next-due', text: findNextDue },
      ])
      return rows[0]?.next_at ?? undefined
    },

    async countDeliveries() {
      const { rows } = await runTransaction<{ waiting: number; oldest_due_at: Date | null }>(deps.pool, [
        { name: 'count-deliveries', text: countDeliveries },
      ])
      return { waiting: rows[0]?.waiting ?? 0, oldestDueAt: rows[0]?.oldest_due_at ?? undefined }
    },
  }
}

type Settling = Pick<ClaimedDelivery, 'id' | 'token'> & {
  attempt: Attempt
  outcome: NextDeliveryState
  pauseAfterMs: number
}

async function completeAll(pool: Pool, items: Settling[]): Promise<boolean[]> {
  const asked = items.map(({ id, token, attempt, outcome }, i) => ({
    ...{ i, id, token, at: attempt.at, status: attempt.status, duration_ms: Math.round(attempt.durationMs) },
    ...{ answer: toStorable(attempt.answer), state: outcome.state },
    next_at: outcome.state === 'pending' ? outcome.nextAt : null,
  }))
  const pauseAfterMs = Math.min(...items.map((item) => item.pauseAfterMs))
  const { rows } = await runTransaction<{ i: number }>(pool, [
    { name: 'settle-deliveries', text: recordAttemptsStatement, values: [JSON.stringify(asked), pauseAfterMs] },
  ])
  const completed = new Set(rows.map(({ i }) => i))
  return items.map((_, i) => completed.has(i))
}

/** A stranger's words: PostgreSQL takes neither a zero nor half a character. */
const toStorable = (answer: string) => answer.replaceAll('\0', '\ufffd').toWellFormed()

const findNextDue = `${eachHost} select min(next_at) as next_at from host`

const countDeliveries = `${eachHost}
select (select count(*) from deliveries where next_at is not null)::integer as waiting,
  (select min(next_at) from host where next_at <= now()) as oldest_due_at
`

type ClaimedRow = Pick<Delivery, 'id' | 'url' | 'attempts'> & {
  lease_token: string
  account_id: string
  host: string
  body: string
  webhook_secret: string
  previous_webhook_secret: string | null
}

const toClaimed = (row: ClaimedRow): ClaimedDelivery => ({
  id: row.id,
  token: row.lease_token,
  accountId: row.account_id,
  url: row.url,
  body: row.body,
  attempts: row.attempts,
  secrets: [row.webhook_secret, ...(row.previous_webhook_secret === null ? [] : [row.previous_webhook_secret])],
})
