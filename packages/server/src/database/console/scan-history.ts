import type { Pool } from 'pg'
import type { RecordedScan, RejectedRequestStore, ScanHistory } from '../../domain/ports/scan-store.ts'
import { changeRows, findRow, listPage, listRows, toPage, toPattern } from '../query.ts'
import { joinRevision, revisedScanFields } from '../scan-store.ts'

export function makeScanHistory({ pool }: { pool: Pool }): ScanHistory {
  return {
    list: (accountId, { status, kind, keyId, from, to, sha256, name }, { before, limit }) => {
      const filter = [status, kind, keyId, from, to, sha256]
      return listPage<RecordedScan>(pool, listScans, [accountId, before, ...filter, limit, toPattern(name)])
    },

    find: (accountId, id) =>
      findRow<RecordedScan>(pool, `${selectScans} where scans.id = $2 and scans.account_id = $1`, [accountId, id]),

    countByDay: (accountId, since) => listRows(pool, countByDay, [accountId, since]),

    listRejectedRequests: (accountId, since) =>
      listRows(
        pool,
        `select to_char(day, 'YYYY-MM-DD') as day, status, count::float8 as count from rejected_requests
         where account_id = $1 and day >= $2::date order by day, status`,
        [accountId, since],
      ),

    async countWebhooks(accountId, since) {
      const row = await findRow<{ delivered: number; failed: number; waiting: number }>(
        pool,
        `select count(*) filter (where state = 'delivered')::int as delivered,
           count(*) filter (where state in ('dead', 'stopped'))::int as failed,
           count(*) filter (where state = 'pending')::int as waiting
         from deliveries where account_id = $1 and created_at >= $2`,
        [accountId, since],
      )
      return row ?? { delivered: 0, failed: 0, waiting: 0 }
    },

    listRevisionsOf: (scanId) =>
      listRows(pool, 'select status, reason, at from scan_revisions where scan_id = $1 order by id', [scanId]),

    listDeliveriesOf: (accountId, scanId) =>
      listRows(
        pool,
        `select id, url, created_at as "createdAt", state from deliveries
         where account_id = $1 and scan_id = $2 and created_at >= (select created_at from scans where id = $2)
         order by created_at`,
        [accountId, scanId],
      ),
  }
}

const selectScans = `
select ${revisedScanFields}, api_keys.name as "keyName" from scans ${joinRevision}
left join api_keys on api_keys.id = key_id`

const page = toPage('scans', { columns: ['created_at', 'id'], order: 'desc', cursor: '$2::uuid', limit: '$9' })

const listScans = `${selectScans}
where scans.account_id = $1 and ${page.condition}
  and ($3::text is null or scans.status = $3) and ($4::text is null or kind = $4) and ($5::uuid is null or key_id = $5)
  and ($6::timestamptz is null or scans.created_at >= $6) and ($7::timestamptz is null or scans.created_at < $7)
  and ($8::text is null or metadata ->> 'hash_sha256' = $8) and ($10::text is null or content_name ilike $10)
${page.ordering}
`

const countByDay = `
select to_char(scans.created_at at time zone 'UTC', 'YYYY-MM-DD') as day, kind, api_keys.name as "keyName",
  count(*) filter (where status = 'clean')::int as clean, count(*) filter (where status = 'threat')::int as threat,
  count(*) filter (where status = 'error')::int as error, count(*) filter (where status = 'pending')::int as pending
from scans left join api_keys on api_keys.id = key_id
where scans.account_id = $1 and scans.created_at >= $2
group by 1, 2, 3 order by 1, 2, 3
`

export function makeRejectedRequestStore({ pool }: { pool: Pool }): RejectedRequestStore {
  return {
    async add(counts) {
      await changeRows(
        pool,
        `insert into rejected_requests as r (account_id, day, status, count)
         select "accountId", (now() at time zone 'UTC')::date, status, count
         from json_to_recordset($1::json) as n ("accountId" uuid, status smallint, count bigint)
         order by "accountId", status
         on conflict (account_id, day, status) do update set count = r.count + excluded.count`,
        [JSON.stringify(counts)],
      )
    },
    deleteOld: (days) =>
      changeRows(pool, `delete from rejected_requests where day < (now() at time zone 'UTC')::date - $1::integer`, [
        days,
      ]),
  }
}
