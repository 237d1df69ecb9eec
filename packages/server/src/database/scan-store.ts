import type { Pool } from 'pg'
import type { ScanStore } from '../domain/ports/scan-store.ts'
import type { Scan } from '../domain/scans/scan.ts'
import { addToDay } from './balances.ts'
import { changeRows, findRow, inTransaction, type Queryable, runInPieces, toTimeAgo } from './query.ts'
import { lowestId, makeScanPartitions } from './scan-partitions.ts'
import { joinRevision, revisedScanFields, scanColumns, scanRecord, toScanRecord } from './scan-records.ts'

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
