import type { Pool, PoolClient } from 'pg'
import type { Link, Member, MemberStore, OpenSession } from '../../domain/ports/member-store.ts'
import { isUniqueViolation } from '../database-error.ts'
import { changeRows, findRow, inTransaction, listRows } from '../query.ts'

type SessionStore = Pick<
  MemberStore,
  'openSession' | 'findSession' | 'listSessions' | 'closeSession' | 'closeSessions' | 'deleteExpired'
>
type LinkStore = Pick<MemberStore, 'addLink' | 'findLink' | 'listLinks' | 'removeLink' | 'acceptLink' | 'acceptReset'>
type AttemptStore = Pick<MemberStore, 'countAttempt' | 'uncountAttempt' | 'forgetFailures'>

export function makeMemberStore({ pool }: { pool: Pool }): MemberStore {
  return {
    ...makeSessionStore({ pool }),
    ...makeLinkStore({ pool }),
    ...makeAttemptStore({ pool }),
    async findFirstOperatorAccount() {
      const row = await findRow<{ hasOperator: boolean; accountId: string | null }>(
        pool,
        `select exists (select from members where role = 'operator') as "hasOperator",
           (select id from accounts order by created_at, id limit 1) as "accountId"`,
      )
      return row?.hasOperator === false ? { accountId: row.accountId } : undefined
    },
    findByEmail: (email) => findRow<Member>(pool, `${selectMember} where lower(email) = lower($1)`, [email]),
    findMember: (id) => findMember(pool, id),
    listMembers: (accountId) =>
      listRows<Member>(pool, `${selectMember} where account_id = $1 order by members.created_at`, [accountId]),
    async setPassword(id, passwordHash) {
      await setPassword(pool, id, passwordHash)
    },
    async setTotp(id, secret, confirmedAt) {
      const text = 'update members set totp_secret = $2, totp_confirmed_at = $3, totp_step = 0 where id = $1'
      await changeRows(pool, text, [id, secret, confirmedAt])
    },
    async takeTotpStep(id, step) {
      const text = 'update members set totp_step = $2 where id = $1 and totp_step < $2'
      return (await changeRows(pool, text, [id, step])) === 1
    },
    async removeMember(accountId, id) {
      const text = 'delete from members where account_id = $1 and id = $2'
      return (await changeRows(pool, text, [accountId, id])) === 1
    },
  }
}

const selectMember = `
select members.id, account_id as "accountId", accounts.name as "accountName", role, email, members.name,
  password_hash as "passwordHash", totp_secret as "totpSecret", totp_confirmed_at as "totpConfirmedAt",
  members.created_at as "createdAt", last_seen_at as "lastSeenAt"
from members left join accounts on accounts.id = account_id`

const findMember = (pool: Pool, id: string) => findRow<Member>(pool, `${selectMember} where members.id = $1`, [id])

const setPassword = (db: Pool | PoolClient, id: string | null, passwordHash: string) =>
  changeRows(db, 'update members set password_hash = $2 where id = $1', [id, passwordHash])

/** The time of the last request is not written for every request: a page of the console sends many at once. */
const seenPrecisionMs = 30_000

function makeSessionStore({ pool }: { pool: Pool }): SessionStore {
  const setLastSeen = async (sessionId: string, memberId: string, now: Date) => {
    await changeRows(pool, 'update console_sessions set last_seen_at = $2 where id = $1', [sessionId, now])
    await changeRows(pool, 'update members set last_seen_at = $2 where id = $1', [memberId, now])
  }

  return {
    async openSession({ id, digest, memberId, createdAt, lastSeenAt, expiresAt, address, agent }) {
      await changeRows(
        pool,
        `insert into console_sessions (id, digest, member_id, created_at, last_seen_at, expires_at, address, agent)
         values ($1, decode($2, 'hex'), $3, $4, $5, $6, $7, $8)`,
        [id, digest, memberId, createdAt, lastSeenAt, expiresAt, address, agent],
      )
      await changeRows(pool, 'update members set last_seen_at = $2 where id = $1', [memberId, lastSeenAt])
    },
    async findSession(digest, now, idleSince) {
      const session = await findRow<{ id: string; memberId: string; lastSeenAt: Date }>(
        pool,
        `select id, member_id as "memberId", last_seen_at as "lastSeenAt" from console_sessions
         where digest = decode($1, 'hex') and expires_at > $2 and last_seen_at > $3`,
        [digest, now, idleSince],
      )
      const member = session && (await findMember(pool, session.memberId))
      if (session === undefined || member === undefined) return undefined
      const isStale = now.getTime() - session.lastSeenAt.getTime() > seenPrecisionMs
      if (isStale) await setLastSeen(session.id, member.id, now)
      return { id: session.id, member }
    },
    listSessions: (memberId) =>
      listRows<OpenSession>(
        pool,
        `select id, created_at as "createdAt", last_seen_at as "lastSeenAt", address, agent from console_sessions
         where member_id = $1 and expires_at > now() order by last_seen_at desc`,
        [memberId],
      ),
    async closeSession(id) {
      await changeRows(pool, 'delete from console_sessions where id = $1', [id])
    },
    async closeSessions(memberId, except) {
      const text = 'delete from console_sessions where member_id = $1 and id is distinct from $2'
      await changeRows(pool, text, [memberId, except ?? null])
    },
    async deleteExpired(now, failuresBefore) {
      const sessions = await changeRows(pool, 'delete from console_sessions where expires_at < $1', [now])
      const links = await changeRows(pool, 'delete from console_links where expires_at < $1', [now])
      const failures = await changeRows(pool, 'delete from sign_in_failures where last_at < $1', [failuresBefore])
      return sessions + links + failures
    },
  }
}

const selectLink = `
select console_links.id, purpose, role, account_id as "accountId", accounts.name as "accountName",
  member_id as "memberId", email, console_links.created_at as "createdAt", console_links.expires_at as "expiresAt"
from console_links left join accounts on accounts.id = account_id`

type UsedLink = { memberId: string | null }

function makeLinkStore({ pool }: { pool: Pool }): LinkStore {
  return {
    async addLink({ id, digest, purpose, role, accountId, memberId, email, createdAt, expiresAt }) {
      await changeRows(
        pool,
        `with replaced as (
           delete from console_links where purpose = $3 and account_id is not distinct from $5
             and member_id is not distinct from $6 and (purpose <> 'invitation' or lower(email) = lower($7))
         )
         insert into console_links (id, digest, purpose, role, account_id, member_id, email, created_at, expires_at)
         values ($1, decode($2, 'hex'), $3, $4, $5, $6, $7, $8, $9)`,
        [id, digest, purpose, role, accountId, memberId, email, createdAt, expiresAt],
      )
    },
    findLink: (digest, now) =>
      findRow<Link>(pool, `${selectLink} where digest = decode($1, 'hex') and console_links.expires_at > $2`, [
        digest,
        now,
      ]),
    listLinks: (accountId, now) =>
      listRows<Link>(
        pool,
        `${selectLink} where account_id = $1 and console_links.expires_at > $2 and purpose = 'invitation'
         order by console_links.created_at desc`,
        [accountId, now],
      ),
    async removeLink(accountId, id) {
      const text = 'delete from console_links where account_id = $1 and id = $2'
      return (await changeRows(pool, text, [accountId, id])) === 1
    },
    acceptLink: (digest, now, { id, accountId, role, email, name, passwordHash }) =>
      useLink(digest, now, (client) =>
        changeRows(
          client,
          `insert into members (id, account_id, role, email, name, password_hash, created_at)
           values ($1, $2, $3, $4, $5, $6, $7)`,
          [id, accountId, role, email, name, passwordHash, now],
        ),
      ).catch((error) => {
        if (!isUniqueViolation(error)) throw error
        return 'email-in-use' as const
      }),
    acceptReset: (digest, now, passwordHash) =>
      useLink(digest, now, (client, { memberId }) => setPassword(client, memberId, passwordHash)),
  }

  /** Deletes the link and does its work in one transaction: of two callers with the same link, one finds it. */
  function useLink(digest: string, now: Date, work: (client: PoolClient, link: UsedLink) => Promise<unknown>) {
    return inTransaction(pool, async (client) => {
      const link = await findRow<UsedLink>(
        client,
        `delete from console_links where digest = decode($1, 'hex') and expires_at > $2
         returning member_id as "memberId"`,
        [digest, now],
      )
      if (link === undefined) return 'link-invalid' as const
      await work(client, link)
      return 'accepted' as const
    })
  }
}

/**
 * The end of the pause after a failure. Beyond 20 doublings the pause is the longest anyway, and power() would
 * overflow.
 */
const pauseEnd = `f.last_at + least($4 * power(2, least(f.failures - $3, 20)), $5) * interval '1 millisecond'`

function makeAttemptStore({ pool }: { pool: Pool }): AttemptStore {
  return {
    async countAttempt(subject, now, { freeFailures, firstPauseMs, longestPauseMs, memoryMs }) {
      const values = [subject, now, freeFailures, firstPauseMs, longestPauseMs]
      const counted = await changeRows(
        pool,
        `insert into sign_in_failures as f (subject, failures, last_at) values ($1, 1, $2)
         on conflict (subject) do update set last_at = $2,
           failures = case when f.last_at > $6 then f.failures + 1 else 1 end
         where f.last_at <= $6 or f.failures < $3 or ${pauseEnd} <= $2`,
        [...values, new Date(now.getTime() - memoryMs)],
      )
      if (counted === 1) return undefined
      const row = await findRow<{ until: Date }>(
        pool,
        `select ${pauseEnd} as until from sign_in_failures f where subject = $1 and $2::timestamptz is not null`,
        values,
      )
      return { waitMs: Math.max(1, (row?.until.getTime() ?? 0) - now.getTime()) }
    },
    async uncountAttempt(subject) {
      const text = 'update sign_in_failures set failures = greatest(failures - 1, 0) where subject = $1'
      await changeRows(pool, text, [subject])
    },
    async forgetFailures(subject) {
      await changeRows(pool, 'delete from sign_in_failures where subject = $1', [subject])
    },
  }
}
