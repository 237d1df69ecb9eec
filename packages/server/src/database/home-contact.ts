import type { Pool } from 'pg'
import { changeRows, findRow } from './query.ts'
import { subscription } from './regions.ts'

/** Whether a region that follows another is connected with it, and when it last heard of it, by its own database. */
export type HomeContact = { isCutOff: boolean; heardAt: Date }

/**
 * Reads whether the home region is heard, and remembers when it was. While it is connected, PostgreSQL asks an idle home
 * region after half of `wal_receiver_timeout`, which is a minute, and waits for the other half. Without a connection,
 * some seconds are left to its worker to start again. Undefined in a region that follows no other.
 */
export const readHomeContact = (pool: Pool): Promise<HomeContact | undefined> =>
  findRow<HomeContact>(pool, readContact, [subscription])

const readContact = `
with heard as (
  select max(last_msg_receipt_time) as at from pg_stat_subscription
  -- A worker that has just started has the time of its start, though it may not reach the home region at all.
  where subname = $1 and relid is null and pid is not null and received_lsn is not null
),
remembered as (
  insert into home_contact (heard_at) select at from heard where at is not null
  on conflict (single) do update set heard_at = excluded.heard_at
  where home_contact.heard_at < excluded.heard_at or home_contact.heard_at > now() + interval '1 minute'
),
contact as (
  select coalesce((select at from heard), heard_at) as "heardAt", (select at from heard) is not null as is_connected
  from home_contact
)
select "heardAt",
  extract(epoch from now() - "heardAt") > case when is_connected then 0.75 * nullif(timeout, 0) else 10 end is true
    as "isCutOff"
from contact cross join lateral (
  select extract(epoch from current_setting('wal_receiver_timeout')::interval) as timeout
) as setting
`

/** Begins to count, when a region begins to follow another. */
export const startHomeContact = (pool: Pool) =>
  changeRows(
    pool,
    'insert into home_contact (heard_at) values (now()) on conflict (single) do update set heard_at = now()',
  )

/** Ends counting: `readHomeContact` then finds nothing. */
export const endHomeContact = (pool: Pool) => changeRows(pool, 'delete from home_contact')
