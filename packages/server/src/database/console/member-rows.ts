import type { Member } from '../../domain/ports/member-store.ts'
import { changeRows, findRow, type Queryable } from '../query.ts'

export const memberColumns = `
members.id, email, members.name, is_operator as "isOperator", members.suspended_at as "suspendedAt",
  password_hash as "passwordHash", totp_confirmed_at as "totpConfirmedAt",
  cardinality(recovery_codes) as "recoveryCodesLeft", members.created_at as "createdAt", last_seen_at as "lastSeenAt"`

export const selectMember = `select ${memberColumns} from members`

export const findMember = (db: Queryable, id: string) =>
  findRow<Member>(db, `${selectMember} where members.id = $1`, [id])

export const selectMembership = `
select account_id as "accountId", accounts.name as "accountName", role,
  accounts.suspended_at as "accountSuspendedAt", suspended_reason as "suspendedReason"
from memberships join accounts on accounts.id = account_id`

export const setPassword = (db: Queryable, id: string | null, passwordHash: string) =>
  changeRows(db, 'update members set password_hash = $2 where id = $1', [id, passwordHash])
