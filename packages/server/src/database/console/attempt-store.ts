import type { Pool } from 'pg'
import type { AttemptLimits, AttemptStore } from '../../domain/ports/attempt-store.ts'
import { changeRows, findRow } from '../query.ts'

/**
 * Whether the failures of a subject still count: the last one lies within the memory. One in the future, from before the
 * clock of the database was set back, does not. The clock is read when the row is: another attempt may have changed it
 * since the statement began.
 */
const isRemembered = `f.last_at > clock_timestamp() - $5::float8 * interval '1 millisecond' and f.last_at <= clock_timestamp()`
/**
 * The end of the pause after a failure. Beyond 20 doublings the pause is the longest anyway, and power() would
 * overflow.
 */
const pauseEnd = `f.last_at + least($3 * power(2, least(f.failures - $2, 20)), $4) * interval '1 millisecond'`
/** A subject has a pause if its free failures are used up. */
const hasPause = `(${isRemembered} and f.failures >= $2 and ${pauseEnd} > clock_timestamp())`

export function makeAttemptStore({ pool }: { pool: Pool }): AttemptStore {
  const toValues = (subject: string, limits: AttemptLimits) => [
    subject,
    limits.freeFailures,
    limits.firstPauseMs,
    limits.longestPauseMs,
    limits.memoryMs,
  ]
  const findPause: AttemptStore['findPause'] = async (subject, limits) => {
    const row = await findRow<{ waitMs: number }>(
      pool,
      `select (extract(epoch from ${pauseEnd} - clock_timestamp()) * 1000)::float8 as "waitMs"
       from sign_in_failures f where subject = $1 and ${hasPause}`,
      toValues(subject, limits),
    )
    return row && { waitMs: Math.max(1, row.waitMs) }
  }

  return {
    findPause,
    async countAttempt(subject, limits) {
      const counted = await changeRows(
        pool,
        `insert into sign_in_failures as f (subject, failures, last_at) values ($1, 1, clock_timestamp())
         on conflict (subject) do update set last_at = clock_timestamp(),
           failures = case when ${isRemembered} then f.failures + 1 else 1 end
         where not ${hasPause}`,
        toValues(subject, limits),
      )
      // A pause that ends between the two statements still refuses this attempt, for a moment.
      return counted === 1 ? undefined : ((await findPause(subject, limits)) ?? { waitMs: 1 })
    },
    async uncountAttempt(subject) {
      await changeRows(pool, 'update sign_in_failures set failures = failures - 1 where subject = $1', [subject])
      // During the pause of a network, every email address that is tried would otherwise leave a row.
      await changeRows(pool, 'delete from sign_in_failures where subject = $1 and failures <= 0', [subject])
    },
    async forgetFailures(subject) {
      await changeRows(pool, 'delete from sign_in_failures where subject = $1', [subject])
    },
  }
}
