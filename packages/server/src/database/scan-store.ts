import type { ScanStore } from '../domain/ports/scan-store.ts'
import { foldLedger } from './ledger-days.ts'
import type { Database } from './open-database.ts'
import { type ScanRow, scanColumns, scanRecord, toScan, toScanColumns } from './scan-columns.ts'
import { makeScanPartitions } from './scan-partitions.ts'

export function makeScanStore(deps: Pick<Database, 'pool'>): ScanStore {
  const partitions = makeScanPartitions(deps)
  return {
    async findScan(accountId, kind, id) {
      const { rows } = await deps.pool.query<ScanRow>({
        name: 'find-scan',
        text: findScan,
        values: [id, accountId, kind],
      })
      return rows[0] === undefined ? undefined : toScan(rows[0])
    },
    async recordFailure(accountId, scan) {
      await deps.pool.query(recordFailure, [accountId, JSON.stringify([toScanColumns(scan)])])
    },
    async countCompleted(since) {
      const { rows } = await deps.pool.query<{ count: number }>(countCompleted, [since])
      return rows[0]?.count ?? 0
    },
    async deleteCompleted(resultDays) {
      return (await partitions.dropOld(resultDays)) + (await partitions.deleteOld(resultDays))
    },
    prepare: (resultDays) => partitions.makeAhead(resultDays),
    foldLedger: (resultDays) => foldLedger(deps.pool, resultDays),
  }
}

const findScan = `
select id, kind, status, content_length, content_type, content_name, signals, metadata, created_at, completed_at
from scans where id = $1 and account_id = $2 and kind = $3
`

const recordFailure = `
insert into scans (account_id, ${scanColumns})
select $1, ${scanColumns} from json_to_recordset($2::json) as scan (${scanRecord})
`

const countCompleted = `select count(*)::integer as count from scans where completed_at > $1 and mode = 'async'`
