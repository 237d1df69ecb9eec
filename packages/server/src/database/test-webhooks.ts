import type { Pool } from 'pg'
import { changeRows } from './query.ts'

/** Counts the webhooks that test keys of an account cause on a day. Only the latest day is kept. */
export function makeTestWebhookStore({ pool }: { pool: Pool }, { maxPerDay }: { maxPerDay: number }) {
  return {
    maxPerDay,
    /** Counts one webhook. Returns false, and counts nothing, when the account has used up the day. */
    async take(accountId: string, now: Date): Promise<boolean> {
      const taken = await changeRows(
        pool,
        `insert into test_webhooks as t (account_id, day, count) values ($1, ($2::timestamptz at time zone 'UTC')::date, 1)
         on conflict (account_id) do update
         set day = excluded.day, count = case when t.day = excluded.day then t.count + 1 else 1 end
         where t.day <> excluded.day or t.count < $3`,
        [accountId, now, maxPerDay],
      )
      return taken === 1
    },
  }
}
