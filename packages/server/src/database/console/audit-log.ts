import type { Pool } from 'pg'
import type { AuditLog, AuditRecord } from '../../domain/ports/audit-log.ts'
import { changeRows, listRows, toPage } from '../query.ts'

export function makeAuditLog({ pool }: { pool: Pool }): AuditLog {
  return {
    async note({ actor, action, target, accountId, detail, address }) {
      await changeRows(
        pool,
        'insert into audit_log (actor, action, target, account_id, detail, address) values ($1, $2, $3, $4, $5, $6)',
        [actor, action, target, accountId, detail, address],
      )
    },
    list: ({ before, action, limit }) => listRows<AuditRecord>(pool, listRecords, [before, action, limit]),
  }
}

const page = toPage('audit_log', { columns: ['id'], order: 'desc', cursor: '$1::bigint', limit: '$3' })

const listRecords = `
select audit_log.id::text, at, actor, action, target, accounts.name as "accountName", detail, address
from audit_log left join accounts on accounts.id = account_id
where ${page.condition} and ($2::text is null or starts_with(action, $2))
${page.ordering}
`
