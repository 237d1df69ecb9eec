import type { Pool } from 'pg'
import type { MemberStore } from '../../domain/ports/member-store.ts'

type AttemptStore = Pick<MemberStore, 'takeAttempt' | 'forgiveAttempt' | 'forgetFailures'>

/** Past this the pause is the longest anyway, and the power would not fit. */
const pauseEnd = `f.last_at + least($4 * power(2, least(f.failures - $3, 20)), $5) * interval '1 millisecond'`

export function makeAttemptStore({ pool }: { pool: Pool }): AttemptStore {
  return {
    async takeAttempt(subject, now, { freeFailures, firstPauseMs, longestPauseMs, memoryMs }) {
      const { rowCount } = await pool.query(
        `insert into sign_in_failures as f (subject, failures, last_at) values ($1, 1, $2)
         on conflict (subject) do update set last_at = $2,
           failures = case when f.last_at > $6 then f.failures + 1 else 1 end
         where f.last_at <= $6 or f.failures < $3 or ${pauseEnd} <= $2`,
        [subject, now, freeFailures, firstPauseMs, longestPauseMs, new Date(now.getTime() - memoryMs)],
      )
      if (rowCount === 1) return undefined
      const { rows } = await pool.query<{ until: Date }>(
        `select ${pauseEnd} as until from sign_in_failures f where subject = $1 and $2::timestamptz is not null`,
        [subject, now, freeFailures, firstPauseMs, longestPauseMs],
      )
      return { waitMs: Math.max(1, (rows[0]?.until.getTime() ?? 0) - now.getTime()) }
    },
    async forgiveAttempt(subject) {
      await pool.query('update sign_in_failures set failures = greatest(failures - 1, 0) where subject = $1', [subject])
    },
    async forgetFailures(subject) {
      await pool.query('delete from sign_in_failures where subject = $1', [subject])
    },
  }
}
