import type { Pool } from 'pg'
import { changeRows } from './query.ts'

/**
 * Shortens waits that lie further ahead than any wait can be, because the clock of the database was set back: leases
 * and pauses of jobs and revisions, leases and retries of deliveries, the day of an idempotency key, updates of
 * sources, imports of hashes. Each keeps its length, counted from now. Returns how many there were.
 *
 * Rate windows, billing periods, sign-in pauses, sessions and links need no repair: one that begins in the future
 * counts as over wherever it is read.
 */
export async function shortenFutureWaits({ pool }: { pool: Pool }): Promise<number> {
  let shortened = 0
  for (const statement of [
    endJobHolds,
    endDeliveryLeases,
    shortenRetries,
    dateIdempotencyKeys,
    dateAlerts,
    shortenAlertRetries,
    endSourceLeases,
    endRevisionHolds,
    shortenImports,
  ]) {
    shortened += await changeRows(pool, statement)
  }
  return shortened
}

/** No lease or pause of a job, and no lease of a delivery, is nearly as long. */
const farAhead = `now() + interval '1 hour'`

const endJobHolds = `update jobs set held_until = now() where held_until > ${farAhead}`

const endDeliveryLeases = `
update deliveries set next_at = now(), lease_token = null where lease_token is not null and next_at > ${farAhead}`

/** A delivery without an attempt is due at once. A retry has the pause that follows the last attempt. */
const shortenRetries = `
update deliveries set last_attempt_at = least(last_attempt_at, now()),
  next_at = case when attempts = 0 then now() else now() + (next_at - last_attempt_at) end
where next_at > now() + interval '1 minute' and lease_token is null
  and (attempts = 0 or last_attempt_at > now() + interval '1 minute')
`

/** A key is kept for a day, so that a repeated request is not charged twice; deleting it early would be worse. */
const dateIdempotencyKeys = `update idempotency_keys set created_at = now() where created_at > ${farAhead}`

const dateAlerts = `
update alerts set since = least(since, now()), absent_since = least(absent_since, now())
where since > ${farAhead} or absent_since > ${farAhead}
`

/** The longest pause before an attempt at an alert is two hours. */
const shortenAlertRetries = `
update alert_messages set created_at = least(created_at, now()), next_at = now(), lease_token = null
where next_at > now() + interval '3 hours'
`

/** The longest pause between two updates of a source is 30 days. */
const endSourceLeases = `
update signature_sources set lease_token = null, leased_until = null, next_at = least(next_at, now())
where leased_until > ${farAhead} or next_at > now() + interval '31 days'
`

/** The second pass looks for results since the time of the change, so that time must not lie ahead. */
const endRevisionHolds = `
update revision_work set created_at = least(created_at, now()), held_until = now(), lease_token = null
where held_until > ${farAhead} or created_at > ${farAhead}
`

/** The longest lease of an import is an hour: that of sorting its hashes. */
const shortenImports = `
update hash_lists set importing_until = now() + interval '1 hour' where importing_until > ${farAhead}
`
