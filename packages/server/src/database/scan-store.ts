import type { Pool } from 'pg'
import { toIsoText } from '../domain/clock.ts'
import type { JobSource, NewJob } from '../domain/ports/job-store.ts'
import type { RecordedScan, RejectedRequestStore, ScanHistory, ScanStore } from '../domain/ports/scan-store.ts'
import type { NewScan, Scan } from '../domain/scans/scan.ts'
import { addToDay } from './balances.ts'
import {
  changeRows,
  findRow,
  inTransaction,
  listPage,
  listRows,
  type Queryable,
  runInPieces,
  toPage,
  toPattern,
  toTimeAgo,
} from './query.ts'
import { lowestId, makeScanPartitions } from './scan-partitions.ts'

export function makeScanStore({ pool }: { pool: Pool }): ScanStore {
  const partitions = makeScanPartitions({ pool })
  return {
    findScan: (accountId, kind, id) => findRow<Scan>(pool, findScan, [id, accountId, kind]),
    async recordFailure(accountId, scan) {
      await changeRows(pool, recordFailure, [accountId, JSON.stringify([toScanRecord(scan)])])
    },
    async countCompleted(withinMs) {
      return (await findRow<{ count: number }>(pool, countCompleted, [withinMs]))?.count ?? 0
    },
    async deleteCompleted(resultDays) {
      return (await partitions.dropOld(resultDays)) + (await partitions.deleteOld(resultDays))
    },
    createPartitions: (resultDays) => partitions.createAhead(resultDays),
    foldLedger: (resultDays) => runInPieces(foldPieceSize, () => foldPiece(pool, resultDays)),
  }
}

async function foldPiece(pool: Pool, resultDays: number): Promise<number> {
  const fold = (client: Queryable) => findRow<{ folded: number }>(client, foldLedger, [resultDays])
  return (await inTransaction(pool, fold, { lock: ledgerLock }))?.folded ?? 0
}

/** A new scan as statements read it: an array of these is one JSON parameter, with the types of `scanRecord`. */
export const toScanRecord = (scan: NewScan) => ({
  id: scan.id,
  kind: scan.kind,
  mode: scan.mode,
  region: scan.region,
  status: scan.status,
  content_length: scan.contentLength,
  content_type: scan.contentType,
  content_name: scan.contentName,
  signals: scan.signals,
  metadata: scan.metadata,
  created_at: toIsoText(scan.createdAt),
  completed_at: scan.completedAt && toIsoText(scan.completedAt),
})

export const scanRecord = `id uuid, kind text, mode text, region text, status text,
    content_length bigint, content_type text, content_name text,
    signals text[], metadata jsonb, created_at timestamptz, completed_at timestamptz`

/** The names of `scanRecord` without their types, for `insert into scans`. */
export const scanColumns = scanRecord.replaceAll(/(\w+) [\w[\]]+/g, '$1')

/** The fields of a `Scan`, read from the table `scans`. The driver returns bigint as text, so the length is a float. */
export const scanFields = `scans.id, scans.kind, scans.status, scans.content_length::float8 as "contentLength",
  scans.content_type as "contentType", scans.content_name as "contentName", scans.signals, scans.metadata,
  scans.created_at as "createdAt", scans.completed_at as "completedAt"`

/** Joins the last revision of each scan, for `revisedScanFields`. */
const joinRevision = `left join lateral (
  select status, reason, at from scan_revisions where scan_id = scans.id order by scan_revisions.id desc limit 1
) as revision on true`

/** The fields of a `Scan` with its last revision in the metadata. */
const revisedScanFields = scanFields.replace(
  'scans.metadata',
  `case when revision.at is null then scans.metadata else coalesce(scans.metadata, '{}') || jsonb_build_object(
    'revised_status', revision.status,
    'revised_at', to_char(revision.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'revised_reason', revision.reason) end as metadata`,
)

const findScan = `
-- name: find-scan
select ${revisedScanFields} from scans ${joinRevision} where id = $1 and account_id = $2 and kind = $3`

const recordFailure = `
insert into scans (account_id, ${scanColumns})
select $1, ${scanColumns} from json_to_recordset($2::json) as scan (${scanRecord})
`

const countCompleted = `select count(*)::integer as count from scans where completed_at > ${toTimeAgo('$1')} and mode = 'async'`

const ledgerLock = 52_115_008
const foldPieceSize = 5000

/**
 * Replaces the refunds of old scans by one row for each account and day, so that the ledger stops growing and still
 * sums to the balance. The refund of a scan that has a job stays, because its unique scan_id keeps a second refund out.
 * Debits are folded when their scans are deleted; see scan-partitions.ts.
 */
const foldLedger = `
with old as materialized (
  select id from credit_ledger
  where scan_id < ${lowestId}
    and at < now() - make_interval(days => $1)
    and not exists (select from jobs where jobs.scan_id = credit_ledger.scan_id)
  order by scan_id limit ${foldPieceSize}
),
deleted as (
  delete from credit_ledger where id = any(array(select id from old))
  returning id, account_id, kind, amount, balance, date_trunc('day', at, 'utc') as day
),
total as (
  insert into credit_ledger as kept (id, account_id, kind, amount, balance, note, at)
  select max(id), account_id, kind, sum(amount), (array_agg(balance order by id desc))[1], count(*) || ' scans', day
  from deleted group by account_id, kind, day order by account_id, day
  ${addToDay}
)
select count(*)::integer as folded from deleted
`

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

/** The types of `toJobRecord`. Fields without a value are left out: the shorter the JSON, the faster it is read. */
export const jobRecord = `is_job boolean, queue text, sealed_from integer, sealed_bytes integer, storage_key text,
    url text, test_case text, hold_ms integer, callback_url text, callback_host text`

export const toJobRecord = ({ source, callbackUrl, queue, holdMs }: NewJob, contents: SealedContents) => ({
  ...contents.add(source),
  is_job: true,
  queue,
  hold_ms: holdMs,
  callback_url: callbackUrl ?? undefined,
  callback_host: callbackUrl === null ? undefined : new URL(callbackUrl).host,
})

/**
 * The sealed contents, or keys of contents, of a batch of jobs or remote scans, one after the other in one parameter:
 * bytes in JSON would be twice as long. Each record says where its own bytes are.
 */
export function newSealedContents() {
  const parts: Buffer[] = []
  let bytes = 0
  return {
    add(source: NewJob['source']) {
      const sealed = source.at === 'row' ? source.sealed : source.at === 'storage' ? source.sealedKey : undefined
      const columns = {
        // PostgreSQL counts bytes from 1.
        sealed_from: bytes + 1,
        sealed_bytes: sealed?.length,
        storage_key: source.at === 'storage' ? source.key : undefined,
        url: source.at === 'url' ? source.url : undefined,
        test_case: source.at === 'test' ? source.testCase : undefined,
      }
      if (sealed !== undefined) {
        parts.push(sealed)
        bytes += sealed.length
      }
      return columns
    },
    toParameter: () => Buffer.concat(parts),
  }
}

type SealedContents = ReturnType<typeof newSealedContents>

export type SourceRow = { sealed: Buffer | null; storageKey: string | null; url: string | null }

/** The columns of a `SourceRow`. */
export const sourceFields = 'sealed, storage_key as "storageKey", url'

export function toSource({ sealed, storageKey, url }: SourceRow): JobSource {
  if (sealed !== null) {
    return storageKey === null ? { at: 'row', sealed } : { at: 'storage', key: storageKey, sealedKey: sealed }
  }
  if (url !== null) return { at: 'url', url }
  throw new Error('A job or remote scan has no content')
}
