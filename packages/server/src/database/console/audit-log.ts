import type { Pool } from 'pg'
import type { AuditLog, AuditRecord } from '../../domain/ports/audit-log.ts'

export function makeAuditLog({ pool }: { pool: Pool }): AuditLog {
  return {
    async note({ actor, action, target, accountId, detail, address }) {
      await pool.query(
        'insert into audit_log (actor, action, target, account_id, detail, address) values ($1, $2, $3, $4, $5, $6)',
        [actor, action, target ?? null, accountId ?? null, detail ?? null, address ?? null],
      )
    },
    async list({ before, action, limit }) {
      const { rows } = await pool.query<AuditRecord>(
        `select audit_log.id::text, at, actor, action, target, accounts.name as "accountName", detail, address
         from audit_log left join accounts on accounts.id = account_id
         where ($1::bigint is null or audit_log.id < $1) and ($2::text is null or starts_with(action, $2))
         order by audit_log.id desc limit $3`,
        [before ?? null, action ?? null, limit],
      )
      return rows
    },
  }
}
