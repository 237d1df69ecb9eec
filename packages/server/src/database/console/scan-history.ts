import type { Pool } from 'pg'
import type { RecordedScan, Refusals, ScanHistory, UsageRow } from '../../domain/ports/scan-history.ts'
import { type ScanRow, toScan } from '../scan-columns.ts'

const columns = `scans.id, kind, status, content_length, content_type, content_name, signals, metadata, scans.created_at,
  completed_at, api_keys.name as key_name`

const toRecorded = (row: ScanRow & { key_name: string | null }): RecordedScan => ({
  ...toScan(row),
  keyName: row.key_name,
})

export function makeScanHistory({ pool }: { pool: Pool }): ScanHistory {
  return {
    async list(accountId, { status, kind, keyId, from, to, sha256 }, { before, limit }) {
      const { rows } = await pool.query<ScanRow & { key_name: string | null }>(
        `select ${columns} from scans left join api_keys on api_keys.id = key_id
         where scans.account_id = $1
           and ($2::uuid is null or (scans.created_at, scans.id) < (select created_at, id from scans where id = $2))
           and ($3::text is null or status = $3) and ($4::text is null or kind = $4) and ($5::uuid is null or key_id = $5)
           and ($6::timestamptz is null or scans.created_at >= $6) and ($7::timestamptz is null or scans.created_at < $7)
           and ($8::text is null or metadata ->> 'hash_sha256' = $8)
         order by scans.created_at desc, scans.id desc limit $9`,
        [
          ...[accountId, before ?? null, status ?? null, kind ?? null, keyId ?? null, from ?? null, to ?? null],
          ...[sha256 ?? null, limit],
        ],
      )
      return rows.map(toRecorded)
    },

    async find(accountId, id) {
      const { rows } = await pool.query<ScanRow & { key_name: string | null }>(
        `select ${columns} from scans left join api_keys on api_keys.id = key_id
         where scans.id = $2 and scans.account_id = $1`,
        [accountId, id],
      )
      return rows[0] && toRecorded(rows[0])
    },

    async countByDay(accountId, since) {
      const { rows } = await pool.query<UsageRow>(
        `select to_char(scans.created_at at time zone 'UTC', 'YYYY-MM-DD') as day, kind, api_keys.name as "keyName",
           count(*) filter (where status = 'clean')::int as clean, count(*) filter (where status = 'threat')::int as threat,
           count(*) filter (where status = 'error')::int as error, count(*) filter (where status = 'pending')::int as pending
         from scans left join api_keys on api_keys.id = key_id
         where scans.account_id = $1 and scans.created_at >= $2
         group by 1, 2, 3 order by 1, 2, 3`,
        [accountId, since],
      )
      return rows
    },

    async listRefusals(accountId, since) {
      const { rows } = await pool.query<Refusals>(
        `select to_char(day, 'YYYY-MM-DD') as day, status, count::float8 as count from rejected_requests
         where account_id = $1 and day >= $2::date order by day, status`,
        [accountId, since],
      )
      return rows
    },

    async countWebhooks(accountId, since) {
      const { rows } = await pool.query<{ delivered: number; failed: number; waiting: number }>(
        `select count(*) filter (where state = 'delivered')::int as delivered,
           count(*) filter (where state in ('dead', 'stopped'))::int as failed,
           count(*) filter (where state = 'pending')::int as waiting
         from deliveries where account_id = $1 and created_at >= $2`,
        [accountId, since],
      )
      return rows[0] ?? { delivered: 0, failed: 0, waiting: 0 }
    },

    async listDeliveriesOf(accountId, scanId) {
      const { rows } = await pool.query<{ id: string; url: string; createdAt: Date; state: string }>(
        `select id, url, created_at as "createdAt", state from deliveries
         where account_id = $1 and scan_id = $2 and created_at >= (select created_at from scans where id = $2)
         order by created_at`,
        [accountId, scanId],
      )
      return rows
    },
  }
}
