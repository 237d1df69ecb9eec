import type { Pool } from 'pg'
import type { MemberStore, Membership, OpenSession } from '../../domain/ports/member-store.ts'
import { changeRows, findRow, hasBegun, listRows, toTimeAgo } from '../query.ts'
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

/** Whether a session can still be used; the second parameter is for how long it may be idle. */
const isOpen = `(expires_at > now() and last_seen_at > ${toTimeAgo('$2')} and ${hasBegun('console_sessions')})`

export function makeSessionStore({ pool }: { pool: Pool }): SessionStore {
  const setLastSeen = async (sessionId: string, memberId: string) => {
    await changeRows(pool, 'update console_sessions set last_seen_at = now() where id = $1', [sessionId])
    await changeRows(pool, 'update members set last_seen_at = now() where id = $1', [memberId])
  }

  return {
    async openSession(session) {
      const { id, digest, memberId, accountId, lifetimeMs, address, agent, passwordHash, deviceDigest } = session
      const values = [id, digest, memberId, accountId, lifetimeMs, address, agent, passwordHash, deviceDigest]
      return (await changeRows(pool, openSession, [...values, session.isSso, session.expiresAt])) === 1
    },
    async findSession(digest, idleMs) {
      const session = await findRow<{ id: string; memberId: string; accountId: string | null; isStale: boolean }>(
        pool,
        `select id, member_id as "memberId", account_id as "accountId",
           last_seen_at not between ${toTimeAgo(String(seenPrecisionMs))} and now() as "isStale"
         from console_sessions
         where digest = decode($1, 'hex') and ${isOpen}`,
        [digest, idleMs],
      )
      const member = session && (await findMember(pool, session.memberId))
      if (session === undefined || member === undefined || member.suspendedAt !== null) return undefined
      const membership = await findRow<Membership>(
        pool,
        `${selectMembership} where member_id = $1 and account_id = $2`,
        [session.memberId, session.accountId],
      )
      if (session.isStale) await setLastSeen(session.id, member.id)
      return { id: session.id, member, membership }
    },
    async setSessionAccount(id, accountId) {
      await changeRows(pool, 'update console_sessions set account_id = $2 where id = $1', [id, accountId])
    },
    listSessions: (memberId, idleMs) =>
      listRows<OpenSession>(
        pool,
        `select id, created_at as "createdAt", last_seen_at as "lastSeenAt", expires_at as "expiresAt", address, agent,
           is_sso as "isSso"
         from console_sessions where member_id = $1 and ${isOpen} order by last_seen_at desc`,
        [memberId, idleMs],
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
    async deleteExpired({ devicesMs, failuresMs }) {
      const sessions = await changeRows(pool, 'delete from console_sessions where expires_at < now()')
      const links = await changeRows(pool, 'delete from console_links where expires_at < now()')
      const oldDevices = `delete from console_devices where last_used_at < ${toTimeAgo('$1')}`
      const devices = await changeRows(pool, oldDevices, [devicesMs])
      const oldFailures = `delete from sign_in_failures where last_at < ${toTimeAgo('$1')}`
      const failures = await changeRows(pool, oldFailures, [failuresMs])
      const attempts = await changeRows(pool, 'delete from sso_attempts where expires_at < now()')
      return sessions + links + devices + failures + attempts
    },
  }
}

/**
 * The update locks the member, so that a new password or a suspension comes entirely before this sign-in, which then
 * finds no member, or entirely after it, and then ends the session.
 */
const openSession = `
with admitted as (
  update members set last_seen_at = now() where id = $3 and password_hash = $8 and suspended_at is null returning id
), remembered as (
  insert into console_devices (member_id, digest, last_used_at) select id, decode($9, 'hex'), now() from admitted
  on conflict (member_id, digest) do update set last_used_at = now()
), forgotten as (
  delete from console_devices where member_id = (select id from admitted) and digest in (
    select digest from console_devices where member_id = $3 and digest <> decode($9, 'hex')
    order by last_used_at desc offset ${maxDevices - 1}
  )
)
insert into console_sessions (id, digest, member_id, account_id, created_at, last_seen_at, expires_at, address, agent,
  is_sso)
select $1, decode($2, 'hex'), id, $4, now(), now(),
  least($11::timestamptz, now() + $5::float8 * interval '1 millisecond'), $6, $7, $10
from admitted
`
