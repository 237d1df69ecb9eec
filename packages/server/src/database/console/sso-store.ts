import type { Pool, PoolClient } from 'pg'
import type { MappedRoles, Member, SsoStore } from '../../domain/ports/member-store.ts'
import { changeRows, findRow, hasBegun, inTransaction, listRows, type Queryable } from '../query.ts'
import { hasOtherOperator, hasOtherOwner, lockMembers, memberColumns } from './session-store.ts'

export function makeSsoStore({ pool }: { pool: Pool }): SsoStore {
  return {
    async addAttempt({ digest, sessionId, lifetimeMs }) {
      await changeRows(
        pool,
        `insert into sso_attempts (digest, session_id, created_at, expires_at)
         values (decode($1, 'hex'), $2, now(), now() + $3::float8 * interval '1 millisecond')`,
        [digest, sessionId, lifetimeMs],
      )
    },
    takeAttempt: (digest) =>
      findRow<{ sessionId: string | null }>(
        pool,
        `delete from sso_attempts where digest = decode($1, 'hex') and expires_at > now() and ${hasBegun('sso_attempts')}
         returning session_id as "sessionId"`,
        [digest],
      ),
    findMember: ({ issuer, subject }) =>
      findRow<Member>(
        pool,
        `select ${memberColumns} from members join sso_identities on member_id = members.id
         where issuer = $1 and subject = $2`,
        [issuer, subject],
      ),
    createMember: ({ id, email, name, passwordHash }) =>
      inTransaction(pool, async (client) => {
        await lockMembers(client)
        const text = `insert into members (id, email, name, password_hash) select $1, $2, $3, $4
          where not exists (select from members where lower(email) = lower($2))`
        return (await changeRows(client, text, [id, email, name, passwordHash])) === 1
      }),
    link: ({ issuer, subject }, memberId) =>
      inTransaction(pool, async (client) => {
        // Before the entry in the audit log, whose lock others take after this one.
        await lockMembers(client)
        const text =
          'insert into sso_identities (issuer, subject, member_id) values ($1, $2, $3) on conflict do nothing'
        return (await changeRows(client, text, [issuer, subject, memberId])) === 1
      }),
    unlink: (memberId) =>
      inTransaction(pool, async (client) => {
        await lockMembers(client)
        const none = { isOperator: false, accounts: [] }
        for (const change of await listChanges(client, memberId, none)) {
          if (!(await hasOther(client, memberId, change))) return 'last'
        }
        await applyRoles(client, memberId, none)
        const text = 'delete from sso_identities where member_id = $1'
        return (await changeRows(client, text, [memberId])) === 1 ? 'done' : 'not-found'
      }),
    async setRoles(memberId, roles) {
      // The lock delays every sign-in, so it is taken only for a change.
      const needed = await listChanges(pool, memberId, roles)
      if (needed.length === 0) return []
      return inTransaction(pool, async (client) => {
        await lockMembers(client)
        return applyRoles(client, memberId, roles)
      })
    },
    async describe(memberId, sessionId) {
      const row = await findRow<{ isLinked: boolean; isSsoSession: boolean }>(
        pool,
        `select exists (select from sso_identities where member_id = $1) as "isLinked",
           exists (select from console_sessions where id = $2 and is_sso) as "isSsoSession"`,
        [memberId, sessionId],
      )
      return row ?? { isLinked: false, isSsoSession: false }
    },
  }
}

type Change =
  | { does: 'give' | 'take'; role: 'operator'; accountId: null }
  | { does: 'give' | 'take'; role: 'owner' | 'member'; accountId: string }

/** Compares the roles of a person with the mapped ones. Accounts that do not exist are left out. */
async function listChanges(db: Queryable, memberId: string, { isOperator, accounts }: MappedRoles): Promise<Change[]> {
  const person = await findRow<{ isOperator: boolean; bySso: boolean }>(
    db,
    `select is_operator as "isOperator", coalesce(gives_operator, false) as "bySso"
     from members left join sso_identities on member_id = members.id where members.id = $1`,
    [memberId],
  )
  type Held = { accountId: string; role: 'owner' | 'member'; bySso: boolean }
  const held = await listRows<Held>(
    db,
    'select account_id as "accountId", role, by_sso as "bySso" from memberships where member_id = $1',
    [memberId],
  )
  const known = await listRows<{ id: string }>(db, 'select id from accounts where id = any($1::uuid[])', [
    accounts.map(({ accountId }) => accountId),
  ])
  const wanted = accounts.filter(({ accountId }) => known.some(({ id }) => id === accountId))
  const changes: Change[] = []
  if (isOperator && person?.isOperator === false) changes.push({ does: 'give', role: 'operator', accountId: null })
  if (!isOperator && person?.bySso === true) changes.push({ does: 'take', role: 'operator', accountId: null })
  for (const { accountId, role, bySso } of held) {
    const isWanted = wanted.some((one) => one.accountId === accountId && one.role === role)
    if (bySso && !isWanted) changes.push({ does: 'take', role, accountId })
  }
  for (const { accountId, role } of wanted) {
    const before = held.find((one) => one.accountId === accountId)
    if (before === undefined || (before.bySso && before.role !== role)) changes.push({ does: 'give', role, accountId })
  }
  return changes
}

/** Whether somebody else has the role, if it is one that a person must have. */
async function hasOther(client: PoolClient, memberId: string, { role, accountId }: Change): Promise<boolean> {
  if (role === 'operator') return hasOtherOperator(client, memberId)
  return role === 'member' || hasOtherOwner(client, accountId, memberId)
}

async function applyRoles(client: PoolClient, memberId: string, roles: MappedRoles): Promise<string[]> {
  const changes = await listChanges(client, memberId, roles)
  for (const { does, role, accountId } of changes) {
    if (role === 'operator') await setOperator(client, memberId, does === 'give')
    else if (does === 'give') {
      const text = 'insert into memberships (member_id, account_id, role, by_sso) values ($1, $2, $3, true)'
      await changeRows(client, text, [memberId, accountId, role])
    } else {
      await changeRows(client, 'delete from console_sessions where member_id = $1 and account_id = $2', [
        memberId,
        accountId,
      ])
      await changeRows(client, 'delete from memberships where member_id = $1 and account_id = $2', [
        memberId,
        accountId,
      ])
    }
  }
  return changes.map(
    ({ does, role, accountId }) => `${does === 'give' ? '+' : '-'}${role}${accountId === null ? '' : ` ${accountId}`}`,
  )
}

/** As soon as there is an operator, the link of the first start serves nobody. */
async function setOperator(client: PoolClient, memberId: string, isOperator: boolean) {
  await changeRows(client, 'update members set is_operator = $2 where id = $1', [memberId, isOperator])
  await changeRows(client, 'update sso_identities set gives_operator = $2 where member_id = $1', [memberId, isOperator])
  if (isOperator) await changeRows(client, "delete from console_links where purpose = 'first-operator'")
}
