import type { Pool, PoolClient } from 'pg'
import type {
  AttemptLimits,
  AttemptStore,
  Member,
  MemberStore,
  Membership,
  OpenSession,
} from '../../domain/ports/member-store.ts'
import { changeRows, findRow, hasBegun, listRows, type Queryable, toTimeAgo } from '../query.ts'

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

export function makeAttemptStore({ pool }: { pool: Pool }): AttemptStore {
  const toValues = (subject: string, limits: AttemptLimits) => [
    subject,
    limits.freeFailures,
    limits.firstPauseMs,
    limits.longestPauseMs,
    limits.memoryMs,
  ]
  const findPause: AttemptStore['findPause'] = async (subject, limits) => {
    const row = await findRow<{ waitMs: number }>(
      pool,
      `select (extract(epoch from ${pauseEnd} - clock_timestamp()) * 1000)::float8 as "waitMs"
       from sign_in_failures f where subject = $1 and ${hasPause}`,
      toValues(subject, limits),
    )
    return row && { waitMs: Math.max(1, row.waitMs) }
  }

  return {
    findPause,
    async countAttempt(subject, limits) {
      const counted = await changeRows(
        pool,
        `insert into sign_in_failures as f (subject, failures, last_at) values ($1, 1, clock_timestamp())
         on conflict (subject) do update set last_at = clock_timestamp(),
           failures = case when ${isRemembered} then f.failures + 1 else 1 end
         where not ${hasPause}`,
        toValues(subject, limits),
      )
      // A pause that ends between the two statements still refuses this attempt, for a moment.
      return counted === 1 ? undefined : ((await findPause(subject, limits)) ?? { waitMs: 1 })
    },
    async uncountAttempt(subject) {
      await changeRows(pool, 'update sign_in_failures set failures = failures - 1 where subject = $1', [subject])
      // During the pause of a network, every email address that is tried would otherwise leave a row.
      await changeRows(pool, 'delete from sign_in_failures where subject = $1 and failures <= 0', [subject])
    },
    async forgetFailures(subject) {
      await changeRows(pool, 'delete from sign_in_failures where subject = $1', [subject])
    },
  }
}

/**
 * Whether the failures of a subject still count: the last one lies within the memory. One in the future, from before the
 * clock of the database was set back, does not. The clock is read when the row is: another attempt may have changed it
 * since the statement began.
 */
const isRemembered = `f.last_at > clock_timestamp() - $5::float8 * interval '1 millisecond' and f.last_at <= clock_timestamp()`

/**
 * The end of the pause after a failure. Beyond 20 doublings the pause is the longest anyway, and power() would
 * overflow.
 */
const pauseEnd = `f.last_at + least($3 * power(2, least(f.failures - $2, 20)), $4) * interval '1 millisecond'`
/** A subject has a pause if its free failures are used up. */
const hasPause = `(${isRemembered} and f.failures >= $2 and ${pauseEnd} > clock_timestamp())`
