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
  | 'addDevice'
  | 'forgetDevices'
  | 'deleteExpired'
>

/** The time of the last request is not written for every request: a page of the console sends many at once. */
const seenPrecisionMs = 30_000

export function makeSessionStore({ pool }: { pool: Pool }): SessionStore {
  const setLastSeen = async (sessionId: string, memberId: string, now: Date) => {
    await changeRows(pool, 'update console_sessions set last_seen_at = $2 where id = $1', [sessionId, now])
    await changeRows(pool, 'update members set last_seen_at = $2 where id = $1', [memberId, now])
  }

  return {
    async openSession({ id, digest, memberId, accountId, createdAt, lastSeenAt, expiresAt, address, agent }) {
      await changeRows(
        pool,
        `insert into console_sessions
           (id, digest, member_id, account_id, created_at, last_seen_at, expires_at, address, agent)
         values ($1, decode($2, 'hex'), $3, $4, $5, $6, $7, $8, $9)`,
        [id, digest, memberId, accountId, createdAt, lastSeenAt, expiresAt, address, agent],
      )
      await changeRows(pool, 'update members set last_seen_at = $2 where id = $1', [memberId, lastSeenAt])
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
    async addDevice(memberId, digest, now) {
      await changeRows(
        pool,
        `insert into console_devices (member_id, digest, last_used_at) values ($1, decode($2, 'hex'), $3)
         on conflict (member_id, digest) do update set last_used_at = $3`,
        [memberId, digest, now],
      )
    },
    async forgetDevices(memberId) {
      await changeRows(pool, 'delete from console_devices where member_id = $1', [memberId])
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
