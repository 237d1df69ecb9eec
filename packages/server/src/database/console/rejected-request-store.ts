import type { Pool } from 'pg'
import type { RejectedRequestStore } from '../../domain/ports/scan-history.ts'

export function makeRejectedRequestStore({ pool }: { pool: Pool }): RejectedRequestStore {
  return {
    async add(counts) {
      await pool.query(
        `insert into rejected_requests as r (account_id, day, status, count)
         select account_id, day, status, sum(count)
         from unnest($1::uuid[], $2::date[], $3::smallint[], $4::bigint[]) as n (account_id, day, status, count)
         group by 1, 2, 3 order by 1, 2, 3
         on conflict (account_id, day, status) do update set count = r.count + excluded.count`,
        [
          ...[counts.map(({ accountId }) => accountId), counts.map(({ day }) => day)],
          ...[counts.map(({ status }) => status), counts.map(({ count }) => count)],
        ],
      )
    },
    async deleteOld(before) {
      return Number((await pool.query('delete from rejected_requests where day < $1::date', [before])).rowCount)
    },
  }
}
