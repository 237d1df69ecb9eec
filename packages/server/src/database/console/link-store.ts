import type { Pool, PoolClient } from 'pg'
import type { Link, MemberStore } from '../../domain/ports/member-store.ts'
import { isUniqueViolation } from '../database-error.ts'
import { changeRows, findRow, hasBegun, inTransaction, listRows } from '../query.ts'
import { lockMembers, setPassword } from './session-store.ts'

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

export function makeLinkStore({ pool }: { pool: Pool }): LinkStore {
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
