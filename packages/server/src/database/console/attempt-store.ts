import type { Pool } from 'pg'
import type { AttemptStore } from '../../domain/ports/attempt-store.ts'
import { changeRows, findRow } from '../query.ts'

/**
 * The end of the pause after a failure. Beyond 20 doublings the pause is the longest anyway, and power() would
 * overflow.
 */
const pauseEnd = `f.last_at + least($4 * power(2, least(f.failures - $3, 20)), $5) * interval '1 millisecond'`
/** A subject has a pause if it was used within the memory and its free failures are used up. */
const hasPause = `f.last_at > $6 and f.failures >= $3 and ${pauseEnd} > $2`

export function makeAttemptStore({ pool }: { pool: Pool }): AttemptStore {
  const findPause: AttemptStore['findPause'] = async (subject, now, limits) => {
    const { freeFailures, firstPauseMs, longestPauseMs, memoryMs } = limits
    const row = await findRow<{ until: Date }>(
      pool,
      `select ${pauseEnd} as until from sign_in_failures f where subject = $1 and ${hasPause}`,
      [subject, now, freeFailures, firstPauseMs, longestPauseMs, new Date(now.getTime() - memoryMs)],
    )
    return row && { waitMs: Math.max(1, row.until.getTime() - now.getTime()) }
  }

  return {
    findPause,
    async countAttempt(subject, now, limits) {
      const { freeFailures, firstPauseMs, longestPauseMs, memoryMs } = limits
      const counted = await changeRows(
        pool,
        `insert into sign_in_failures as f (subject, failures, last_at) values ($1, 1, $2)
         on conflict (subject) do update set last_at = $2,
           failures = case when f.last_at > $6 then f.failures + 1 else 1 end
         where not (${hasPause})`,
        [subject, now, freeFailures, firstPauseMs, longestPauseMs, new Date(now.getTime() - memoryMs)],
      )
      // A pause that ends between the two statements still refuses this attempt, for a moment.
      return counted === 1 ? undefined : ((await findPause(subject, now, limits)) ?? { waitMs: 1 })
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
