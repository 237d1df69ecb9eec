import type { Pool } from 'pg'
import { changeRows, findRow } from './query.ts'

/** Counts the webhooks that test keys of an account cause on a day. Only the latest day is kept. */
export function makeTestWebhookStore({ pool }: { pool: Pool }, { maxPerDay }: { maxPerDay: number }) {
  return {
    maxPerDay,
    /** Counts one webhook. Returns the seconds until the next day, and counts nothing, when the day is used up. */
    async take(accountId: string): Promise<number | undefined> {
      const taken = await changeRows(
        pool,
        `insert into test_webhooks as t (account_id, day, count) values ($1, (now() at time zone 'UTC')::date, 1)
         on conflict (account_id) do update
         set day = excluded.day, count = case when t.day = excluded.day then t.count + 1 else 1 end
         where t.day <> excluded.day or t.count < $2`,
        [accountId, maxPerDay],
      )
      if (taken === 1) return undefined
      return (await findRow<{ seconds: number }>(pool, secondsLeft))?.seconds
    },
  }
}

const secondsLeft = `
select ceil(extract(epoch from date_trunc('day', now(), 'UTC') + interval '1 day' - now()))::integer as seconds`
