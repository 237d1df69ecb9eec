import type { Pool } from 'pg'
import type { AuditHead, AuditLog, AuditRecord } from '../../domain/ports/audit-log.ts'
import { atomically, findRow, listPage, listRows, toPage, toPattern } from '../query.ts'
import { afterCommit } from '../unit-of-work.ts'
import { verifyAuditChain } from './audit-chain.ts'

/** `onNoted` gets the head of the log after each entry, for a place that cannot be changed with the database. */
export function makeAuditLog({ pool, onNoted }: { pool: Pool; onNoted?(head: AuditHead): void }): AuditLog {
  return {
    atomically: (work) => atomically(pool, work),
    async note({ actor, action, target, accountId, detail, address }) {
      const row = await findRow<{ id: string; hash: string }>(
        pool,
        `insert into audit_log (actor, action, target, account_id, detail, address) values ($1, $2, $3, $4, $5, $6)
         returning id, encode(hash, 'hex') as hash`,
        [actor, action, target, accountId, detail, address],
      )
      if (row !== undefined) afterCommit(() => onNoted?.({ id: Number(row.id), hash: row.hash }))
    },
    verify: (anchor) => verifyAuditChain(pool, anchor),
    listOfAccount: (accountId, { actions, since, limit }) =>
      listRows<AuditRecord>(pool, listRecordsOfAccount, [accountId, actions, since, limit]),
    list: ({ action, actor, from, to }, { before, limit }) =>
      listPage<AuditRecord>(pool, listRecords, [before, action, limit, toPattern(actor), from, to]),
  }
}

const page = toPage('audit_log', { columns: ['id'], order: 'desc', cursor: '$1::bigint', limit: '$3' })

const selectRecords = `
select audit_log.id::text, at, actor, action, target, accounts.name as "accountName", detail, address
from audit_log left join accounts on accounts.id = account_id`

const listRecordsOfAccount = `${selectRecords}
where account_id = $1 and action = any ($2) and ($3::timestamptz is null or date_trunc('milliseconds', at) > $3)
order by audit_log.id desc limit $4
`

const listRecords = `${selectRecords}
where ${page.condition} and ($2::text is null or starts_with(action, $2)) and ($4::text is null or actor ilike $4)
  and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)
${page.ordering}
`
