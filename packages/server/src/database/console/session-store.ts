import type { Pool } from 'pg'
import type { MemberStore, Membership, OpenSession } from '../../domain/ports/member-store.ts'
import { changeRows, findRow, listRows } from '../query.ts'
import { findMember, selectMembership } from './member-rows.ts'

type SessionStore = Pick<
  MemberStore,
  | 'openSession'
  | 'findSession'
  | 'setSessionAccount'
  | 'listSessions'
  | 'closeSession'
  | 'closeSessions'
  | 'isKnownDevice'
  | 'deleteExpired'
>

/** The time of the last request is not written for every request: a page of the console sends many at once. */
const seenPrecisionMs = 30_000

/** Each member has at most this many remembered browsers. Clients that keep no cookies add one at each sign-in. */
const maxDevices = 20

export function makeSessionStore({ pool }: { pool: Pool }): SessionStore {
  const setLastSeen = async (sessionId: string, memberId: string, now: Date) => {
    await changeRows(pool, 'update console_sessions set last_seen_at = $2 where id = $1', [sessionId, now])
    await changeRows(pool, 'update members set last_seen_at = $2 where id = $1', [memberId, now])
  }

  return {
    async openSession({ id, digest, memberId, accountId, createdAt, lastSeenAt, expiresAt, address, agent, ...more }) {
      const values = [id, digest, memberId, accountId, createdAt, lastSeenAt, expiresAt, address, agent]
      return (await changeRows(pool, openSession, [...values, more.passwordHash, more.deviceDigest])) === 1
    },
    async findSession(digest, now, idleSince) {
      const session = await findRow<{ id: string; memberId: string; accountId: string | null; lastSeenAt: Date }>(
        pool,
        `select id, member_id as "memberId", account_id as "accountId", last_seen_at as "lastSeenAt"
         from console_sessions where digest = decode($1, 'hex') and expires_at > $2 and last_seen_at > $3`,
        [digest, now, idleSince],
      )
      const member = session && (await findMember(pool, session.memberId))
      if (session === undefined || member === undefined || member.suspendedAt !== null) return undefined
      const membership = await findRow<Membership>(
        pool,
        `${selectMembership} where member_id = $1 and account_id = $2`,
        [session.memberId, session.accountId],
      )
      const isStale = now.getTime() - session.lastSeenAt.getTime() > seenPrecisionMs
      if (isStale) await setLastSeen(session.id, member.id, now)
      return { id: session.id, member, membership }
    },
    async setSessionAccount(id, accountId) {
      await changeRows(pool, 'update console_sessions set account_id = $2 where id = $1', [id, accountId])
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
    async closeSessions(memberId) {
      await changeRows(pool, 'delete from console_sessions where member_id = $1', [memberId])
    },
    async isKnownDevice(memberId, digest) {
      const text = "select from console_devices where member_id = $1 and digest = decode($2, 'hex')"
      return (await findRow(pool, text, [memberId, digest])) !== undefined
    },
    async deleteExpired(now, before) {
      const sessions = await changeRows(pool, 'delete from console_sessions where expires_at < $1', [now])
      const links = await changeRows(pool, 'delete from console_links where expires_at < $1', [now])
      const devices = await changeRows(pool, 'delete from console_devices where last_used_at < $1', [before.devices])
      const failures = await changeRows(pool, 'delete from sign_in_failures where last_at < $1', [before.failures])
      return sessions + links + devices + failures
    },
  }
}

/**
 * The update locks the member, so that a new password or a suspension comes entirely before this sign-in, which then
 * finds no member, or entirely after it, and then ends the session.
 */
const openSession = `
with admitted as (
  update members set last_seen_at = $6 where id = $3 and password_hash = $10 and suspended_at is null returning id
), remembered as (
  insert into console_devices (member_id, digest, last_used_at) select id, decode($11, 'hex'), $6 from admitted
  on conflict (member_id, digest) do update set last_used_at = $6
), forgotten as (
  delete from console_devices where member_id = (select id from admitted) and digest in (
    select digest from console_devices where member_id = $3 and digest <> decode($11, 'hex')
    order by last_used_at desc offset ${maxDevices - 1}
  )
)
insert into console_sessions (id, digest, member_id, account_id, created_at, last_seen_at, expires_at, address, agent)
select $1, decode($2, 'hex'), id, $4, $5, $6, $7, $8, $9 from admitted
`
