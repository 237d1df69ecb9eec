import type { Pool, PoolClient } from 'pg'
import type { AccountMember, Link, Member, MemberStore, Membership, Removal } from '../../domain/ports/member-store.ts'
import type { Binding, Sealer } from '../../domain/ports/secret-store.ts'
import { isUniqueViolation } from '../database-error.ts'
import { changeRows, findRow, hasBegun, inTransaction, listRows } from '../query.ts'
import {
  findMember,
  hasOtherOperator,
  hasOtherOwner,
  lockMembers,
  makeSessionStore,
  memberColumns,
  selectMember,
  selectMembership,
  setPassword,
} from './session-store.ts'

export function makeMemberStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): MemberStore {
  return {
    ...makeSessionStore({ pool }),
    ...makeLinkStore({ pool }),
    async findFirstOperatorAccount() {
      const row = await findRow<{ hasOperator: boolean; accountId: string | null }>(
        pool,
        `select exists (select from members where is_operator) as "hasOperator",
           (select id from accounts order by created_at, id limit 1) as "accountId"`,
      )
      return row?.hasOperator === false ? { accountId: row.accountId } : undefined
    },
    findByEmail: (email) => findRow<Member>(pool, `${selectMember} where lower(email) = lower($1)`, [email]),
    findMember: (id) => findMember(pool, id),
    listMembers: (accountId) =>
      listRows<AccountMember>(
        pool,
        `select ${memberColumns}, memberships.role from members join memberships on member_id = members.id
         where account_id = $1 order by memberships.created_at`,
        [accountId],
      ),
    listMemberships: (memberId) =>
      listRows<Membership>(pool, `${selectMembership} where member_id = $1 order by memberships.created_at`, [
        memberId,
      ]),
    listOperators: () => listRows<Member>(pool, `${selectMember} where is_operator order by created_at`),
    suspendOperator: (id, isSuspended, { mayBeLast = !isSuspended } = {}) =>
      inTransaction(pool, async (client) => {
        await lockMembers(client)
        if (!mayBeLast && !(await hasOtherOperator(client, id))) return 'last'
        const text = 'update members set suspended_at = case when $2 then now() end where id = $1 and is_operator'
        if ((await changeRows(client, text, [id, isSuspended])) === 0) return 'not-found'
        if (isSuspended) await changeRows(client, 'delete from console_sessions where member_id = $1', [id])
        return 'done'
      }),
    removeOperator: (id, { mayBeLast = false } = {}) =>
      inTransaction(pool, async (client) => {
        await lockMembers(client)
        if (!mayBeLast && !(await hasOtherOperator(client, id))) return 'last'
        const removed = await changeRows(client, 'delete from members where id = $1 and is_operator', [id])
        return removed === 1 ? 'done' : 'not-found'
      }),
    setPassword: (id, change) => inTransaction(pool, (client) => setPassword(client, id, change)),
    async startTotp(id, secret) {
      const text = 'update members set totp_secret = $2, totp_step = 0 where id = $1 and totp_confirmed_at is null'
      return (await changeRows(pool, text, [id, await sealer.seal(secret, totpSecretOf(id))])) === 1
    },
    async confirmTotp(id, { secret, step, recoveryDigests }) {
      // The secret is written again: another start may have replaced the one that the code belongs to.
      const text = `update members set totp_secret = $2, totp_step = $3, recovery_codes = $4, totp_confirmed_at = now()
        where id = $1 and totp_confirmed_at is null`
      const sealed = await sealer.seal(secret, totpSecretOf(id))
      return (await changeRows(pool, text, [id, sealed, step, recoveryDigests.map(fromHex)])) === 1
    },
    async removeTotp(id) {
      const text = `update members set totp_secret = null, totp_confirmed_at = null, totp_step = 0,
        recovery_codes = '{}' where id = $1`
      await changeRows(pool, text, [id])
    },
    async findTotpSecret(id) {
      const text = 'select totp_secret as sealed from members where id = $1'
      const sealed = (await findRow<{ sealed: Buffer | null }>(pool, text, [id]))?.sealed ?? null
      return sealed && sealer.open(sealed, totpSecretOf(id))
    },
    async takeTotpStep(id, step) {
      const text = 'update members set totp_step = $2 where id = $1 and totp_step < $2'
      return (await changeRows(pool, text, [id, step])) === 1
    },
    async setRecoveryCodes(id, digests) {
      await changeRows(pool, 'update members set recovery_codes = $2 where id = $1', [id, digests.map(fromHex)])
    },
    async takeRecoveryCode(id, digest) {
      const text = `update members set recovery_codes = array_remove(recovery_codes, $2)
        where id = $1 and $2 = any (recovery_codes)`
      return (await changeRows(pool, text, [id, fromHex(digest)])) === 1
    },
    removeMember: (accountId, id) => inTransaction(pool, (client) => removeMember(client, accountId, id)),
    async setNoticesSeen(accountId, memberId, at) {
      const text = 'update memberships set notices_seen_at = $3 where account_id = $1 and member_id = $2'
      await changeRows(pool, text, [accountId, memberId, at])
    },
    async findNoticesSeen(accountId, memberId) {
      const text = 'select notices_seen_at as "seenAt" from memberships where account_id = $1 and member_id = $2'
      return (await findRow<{ seenAt: Date | null }>(pool, text, [accountId, memberId]))?.seenAt ?? null
    },
  }
}

async function removeMember(client: PoolClient, accountId: string, id: string): Promise<Removal> {
  const values = [accountId, id]
  await lockMembers(client)
  const role = await findRow<{ role: string }>(
    client,
    'select role from memberships where account_id = $1 and member_id = $2',
    values,
  )
  if (role === undefined) return 'not-found'
  if (role.role === 'owner' && !(await hasOtherOwner(client, accountId, id))) return 'last'
  await changeRows(client, 'delete from memberships where account_id = $1 and member_id = $2', values)
  await changeRows(client, 'delete from console_sessions where account_id = $1 and member_id = $2', values)
  await changeRows(
    client,
    `delete from members where id = $1 and not is_operator
       and not exists (select from memberships where member_id = $1)`,
    [id],
  )
  return 'done'
}

const fromHex = (digest: string) => Buffer.from(digest, 'hex')

export const totpSecretOf = (memberId: string): Binding => ['members.totp_secret', memberId]

type LinkStore = Pick<
  MemberStore,
  'addLink' | 'findLink' | 'listLinks' | 'removeLink' | 'acceptLink' | 'joinByLink' | 'acceptReset'
>

const selectLink = `
select console_links.id, purpose, role, account_id as "accountId", accounts.name as "accountName",
  member_id as "memberId", email, console_links.created_at as "createdAt", console_links.expires_at as "expiresAt"
from console_links left join accounts on accounts.id = account_id`

const isValid = `(console_links.expires_at > now() and ${hasBegun('console_links')})`

type UsedLink = Pick<Link, 'purpose' | 'role' | 'accountId' | 'memberId'>

function makeLinkStore({ pool }: { pool: Pool }): LinkStore {
  return {
    async addLink({ id, digest, purpose, role, accountId, memberId, email, lifetimeMs }) {
      const added = await findRow<{ expiresAt: Date }>(
        pool,
        `with replaced as (
           delete from console_links where purpose = $3 and account_id is not distinct from $5
             and member_id is not distinct from $6 and (purpose <> 'invitation' or lower(email) = lower($7))
         )
         insert into console_links (id, digest, purpose, role, account_id, member_id, email, created_at, expires_at)
         values ($1, decode($2, 'hex'), $3, $4, $5, $6, $7, now(), now() + $8::float8 * interval '1 millisecond')
         returning expires_at as "expiresAt"`,
        [id, digest, purpose, role, accountId, memberId, email, lifetimeMs],
      )
      if (added === undefined) throw new Error(`Link ${id} was not added`)
      return added.expiresAt
    },
    findLink: (digest) =>
      findRow<Link>(pool, `${selectLink} where digest = decode($1, 'hex') and ${isValid}`, [digest]),
    listLinks: (accountId) =>
      listRows<Link>(
        pool,
        `${selectLink} where account_id = $1 and ${isValid} and purpose = 'invitation'
         order by console_links.created_at desc`,
        [accountId],
      ),
    async removeLink(accountId, id) {
      const text = 'delete from console_links where account_id = $1 and id = $2'
      return (await changeRows(pool, text, [accountId, id])) === 1
    },
    acceptLink: (digest, { id, email, name, passwordHash }) =>
      useLink(digest, async (client, link) => {
        const text = 'insert into members (id, email, name, password_hash) values ($1, $2, $3, $4)'
        await changeRows(client, text, [id, email, name, passwordHash])
        await grant(client, id, link)
      }).catch((error) => {
        if (!isUniqueViolation(error)) throw error
        return 'email-in-use' as const
      }),
    joinByLink: (digest, memberId) => useLink(digest, (client, link) => grant(client, memberId, link)),
    acceptReset: (digest, passwordHash) =>
      useLink(digest, (client, { memberId }) => setPassword(client, memberId, { to: passwordHash })),
  }

  /** Deletes the link and does its work in one transaction: of two callers with the same link, one finds it. */
  function useLink(digest: string, work: (client: PoolClient, link: UsedLink) => Promise<unknown>) {
    return inTransaction(pool, async (client) => {
      await lockMembers(client)
      const used = await findRow<UsedLink>(
        client,
        `delete from console_links where digest = decode($1, 'hex') and ${isValid}
         returning purpose, role, account_id as "accountId", member_id as "memberId"`,
        [digest],
      )
      const link = used?.role === 'operator' ? await admitOperator(client, used) : used
      if (link === undefined) return 'link-invalid' as const
      await work(client, link)
      return 'accepted' as const
    })
  }
}

/**
 * Only the first operator gets an account with the role, and the link of the first start serves nobody else. Every new
 * operator ends the other links of the first start. Because of the lock on members, two operators who join at the same
 * time do this one after the other.
 */
async function admitOperator(client: PoolClient, link: UsedLink): Promise<UsedLink | undefined> {
  if (link.purpose === 'new-password') return link
  await changeRows(client, "delete from console_links where purpose = 'first-operator'")
  const operator = await findRow(client, 'select from members where is_operator limit 1')
  if (operator === undefined) return link
  return link.purpose === 'first-operator' ? undefined : { ...link, accountId: null }
}

/**
 * Gives a person what a link offers: the role of an operator, a membership, or both. An owner stays an owner. Single
 * sign-on does not take away a role that a link gives.
 */
async function grant(client: PoolClient, memberId: string, { role, accountId }: UsedLink) {
  if (role === 'operator') {
    await changeRows(client, 'update members set is_operator = true where id = $1', [memberId])
    await changeRows(client, 'update sso_identities set gives_operator = false where member_id = $1', [memberId])
  }
  if (accountId === null) return
  await changeRows(
    client,
    `insert into memberships as m (member_id, account_id, role) values ($1, $2, $3)
     on conflict (member_id, account_id) do update
     set role = case when m.role = 'owner' then 'owner' else excluded.role end,
       by_sso = m.by_sso and m.role = 'owner' and excluded.role = 'member'`,
    [memberId, accountId, role === 'member' ? 'member' : 'owner'],
  )
}
