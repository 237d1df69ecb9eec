import type { PoolClient } from 'pg'
import type { Member } from '../../domain/ports/member-store.ts'
import { changeRows, findRow, type Queryable } from '../query.ts'

export const memberColumns = `
members.id, email, members.name, is_operator as "isOperator", members.suspended_at as "suspendedAt",
  password_hash as "passwordHash", totp_confirmed_at as "totpConfirmedAt",
  cardinality(recovery_codes) as "recoveryCodesLeft", members.created_at as "createdAt", last_seen_at as "lastSeenAt"`

export const selectMember = `select ${memberColumns} from members`

export const findMember = (db: Queryable, id: string) =>
  findRow<Member>(db, `${selectMember} where members.id = $1`, [id])

/**
 * Makes transactions that decide by who the operators and owners are run one after the other. They take this lock
 * before any other, so that they do not wait for each other in a circle.
 */
export const lockMembers = (client: PoolClient) => client.query('lock table members in share row exclusive mode')

/** Whether another operator than this person can sign in. */
export async function hasOtherOperator(client: PoolClient, id: string): Promise<boolean> {
  const text = 'select from members where is_operator and suspended_at is null and id <> $1 limit 1'
  return (await findRow(client, text, [id])) !== undefined
}

/** Whether another owner of the account than this person can sign in. */
export async function hasOtherOwner(client: PoolClient, accountId: string, id: string): Promise<boolean> {
  const text = `select from memberships join members on members.id = member_id
    where account_id = $1 and member_id <> $2 and role = 'owner' and suspended_at is null limit 1`
  return (await findRow(client, text, [accountId, id])) !== undefined
}

export const selectMembership = `
select account_id as "accountId", accounts.name as "accountName", role,
  accounts.suspended_at as "accountSuspendedAt", suspended_reason as "suspendedReason"
from memberships join accounts on accounts.id = account_id`

/**
 * Sets the password, ends all sessions and links for a new password, and forgets all browsers, in the transaction of the
 * client. With `from`, it does so only while the hash is still that one. The update comes first: it waits for sign-ins
 * that lock the member, so that the statements after it see their sessions.
 */
export async function setPassword(client: PoolClient, id: string | null, { from, to }: { from?: string; to: string }) {
  const text = 'update members set password_hash = $2 where id = $1 and ($3::text is null or password_hash = $3)'
  if ((await changeRows(client, text, [id, to, from ?? null])) === 0) return false
  await changeRows(client, 'delete from console_sessions where member_id = $1', [id])
  await changeRows(client, 'delete from console_devices where member_id = $1', [id])
  await changeRows(client, 'delete from console_links where member_id = $1', [id])
  return true
}
