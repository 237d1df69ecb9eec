import type { Pool } from 'pg'
import type { Member, MemberStore, OpenSession } from '../../domain/ports/member-store.ts'
import { makeAttemptStore } from './attempt-store.ts'
import { makeLinkStore } from './link-store.ts'

const selectMember = `
  select members.id, account_id as "accountId", accounts.name as "accountName", role, email, members.name,
    password_hash as "passwordHash", totp_secret as "totpSecret", totp_confirmed_at as "totpConfirmedAt",
    members.created_at as "createdAt", last_seen_at as "lastSeenAt"
  from members left join accounts on accounts.id = account_id`

export function makeMemberStore({ pool }: { pool: Pool }): MemberStore {
  const findOne = async (where: string, value: string): Promise<Member | undefined> =>
    (await pool.query<Member>(`${selectMember} where ${where}`, [value])).rows[0]

  return {
    ...makeLinkStore({ pool }),
    ...makeAttemptStore({ pool }),
    async findVacancy() {
      const { rows } = await pool.query<{ taken: boolean; accountId: string | null }>(
        `select exists (select from members where role = 'operator') as taken,
           (select id from accounts order by created_at, id limit 1) as "accountId"`,
      )
      const [{ taken, accountId } = { taken: true, accountId: null }] = rows
      return taken ? undefined : { accountId }
    },
    findByEmail: (email) => findOne('lower(email) = lower($1)', email),
    findMember: (id) => findOne('members.id = $1', id),
    async listMembers(accountId) {
      const { rows } = await pool.query<Member>(`${selectMember} where account_id = $1 order by members.created_at`, [
        accountId,
      ])
      return rows
    },
    async setPassword(id, passwordHash) {
      await pool.query('update members set password_hash = $2 where id = $1', [id, passwordHash])
    },
    async setTotp(id, secret, confirmedAt) {
      await pool.query('update members set totp_secret = $2, totp_confirmed_at = $3, totp_step = 0 where id = $1', [
        ...[id, secret, confirmedAt],
      ])
    },
    async takeTotpStep(id, step) {
      const { rowCount } = await pool.query('update members set totp_step = $2 where id = $1 and totp_step < $2', [
        ...[id, step],
      ])
      return rowCount === 1
    },
    async removeMember(accountId, id) {
      const { rowCount } = await pool.query('delete from members where account_id = $1 and id = $2', [accountId, id])
      return rowCount === 1
    },

    async openSession({ id, digest, memberId, createdAt, lastSeenAt, expiresAt, address, agent }) {
      await pool.query(
        `insert into console_sessions (id, digest, member_id, created_at, last_seen_at, expires_at, address, agent)
         values ($1, decode($2, 'hex'), $3, $4, $5, $6, $7, $8)`,
        [id, digest, memberId, createdAt, lastSeenAt, expiresAt, address, agent],
      )
      await pool.query('update members set last_seen_at = $2 where id = $1', [memberId, lastSeenAt])
    },
    async findSession(digest, now, idleSince) {
      const { rows } = await pool.query<{ id: string; member_id: string; last_seen_at: Date }>(
        `select id, member_id, last_seen_at from console_sessions
         where digest = decode($1, 'hex') and expires_at > $2 and last_seen_at > $3`,
        [digest, now, idleSince],
      )
      const [session] = rows
      const member = session && (await findOne('members.id = $1', session.member_id))
      if (session === undefined || member === undefined) return undefined
      if (now.getTime() - session.last_seen_at.getTime() > noteAfterMs) await noteSeen(session.id, member.id, now)
      return { id: session.id, member }
    },
    async listSessions(memberId) {
      const { rows } = await pool.query<OpenSession>(
        `select id, created_at as "createdAt", last_seen_at as "lastSeenAt", address, agent from console_sessions
         where member_id = $1 and expires_at > now() order by last_seen_at desc`,
        [memberId],
      )
      return rows
    },
    async closeSession(id) {
      await pool.query('delete from console_sessions where id = $1', [id])
    },
    async closeSessions(memberId, but) {
      await pool.query('delete from console_sessions where member_id = $1 and id is distinct from $2', [
        ...[memberId, but ?? null],
      ])
    },

    async sweep(now, failuresBefore) {
      const ended = await pool.query('delete from console_sessions where expires_at < $1', [now])
      const links = await pool.query('delete from console_links where expires_at < $1', [now])
      const failures = await pool.query('delete from sign_in_failures where last_at < $1', [failuresBefore])
      return Number(ended.rowCount) + Number(links.rowCount) + Number(failures.rowCount)
    },
  }

  async function noteSeen(sessionId: string, memberId: string, now: Date) {
    await pool.query('update console_sessions set last_seen_at = $2 where id = $1', [sessionId, now])
    await pool.query('update members set last_seen_at = $2 where id = $1', [memberId, now])
  }
}

/** Not with every request: a page asks many things at once. */
const noteAfterMs = 30_000
