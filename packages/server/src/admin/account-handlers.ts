import type { AccountView, KeyRow, Member as MemberView, Notice } from '@assay/contract/admin'
import { type Account, type ApiKey, toRateText } from '../domain/accounts/account.ts'
import { type KeyRestrictions, readNetwork } from '../domain/accounts/keys.ts'
import type { Registration } from '../domain/accounts/registration.ts'
import type { Clock } from '../domain/clock.ts'
import { consoleKeyName, consoleKeyPrefix } from '../domain/console/authentication.ts'
import type { Invitations } from '../domain/console/invitations.ts'
import type { AccountStore, KeyStore } from '../domain/ports/account-store.ts'
import type { AccountMember, MemberStore } from '../domain/ports/member-store.ts'
import type { AuditLog, AuditRecord } from '../domain/ports/operations.ts'
import { Problem } from '../domain/problem.ts'
import { toOrigin } from '../http/request.ts'
import {
  type Call,
  getAccountId,
  getId,
  type Handlers,
  readExpiry,
  requireFound,
  requireRemoved,
  toConflict,
} from './call.ts'

export type AccountHandlerDeps = {
  accounts: AccountStore
  members: MemberStore
  keys: KeyStore
  audit: AuditLog
  invitations: Invitations
}

/** Handlers for the account, its members and their notices. */
export function makeAccountHandlers(deps: AccountHandlerDeps) {
  const { accounts, members, keys, audit, invitations } = deps

  return {
    getAccount: async (call) => toAccountView(requireFound(await accounts.findAccount(getAccountId(call)), 'account')),

    async listMembers(call) {
      const accountId = getAccountId(call)
      const links = await members.listLinks(accountId)
      return {
        members: (await members.listMembers(accountId)).map(toMemberView),
        invitations: links.map(({ id, role, email, createdAt, expiresAt }) => ({
          id,
          role,
          email,
          created_at: createdAt.toISOString(),
          expires_at: expiresAt.toISOString(),
        })),
      }
    },

    async inviteMember(call) {
      const { role, email } = call.body
      const { id, token, expiresAt } = await invitations.invite({ role, accountId: getAccountId(call), email })
      await call.audit('member.invite', email)
      return { id, url: toWelcomeUrl(call, token), expires_at: expiresAt.toISOString() }
    },

    async removeMember(call) {
      const accountId = getAccountId(call)
      const id = getId(call, 'member')
      if (id === call.who.memberId) {
        throw new Problem({ kind: 'conflict', detail: 'You cannot remove yourself. Ask another owner.' })
      }
      const target = (await members.listMembers(accountId)).find((member) => member.id === id)
      if (target === undefined) requireFound(await members.removeLink(accountId, id), 'member')
      else requireRemoved(await members.removeMember(accountId, id), 'owner')
      await call.audit('member.remove', target?.email ?? 'invitation')
      if (target === undefined) return { keys: [] }
      // The member has seen these keys: the owner decides which of them to revoke.
      const created = (await keys.listKeys(accountId)).filter(
        ({ createdBy, revokedAt }) => createdBy === target.email && revokedAt === null,
      )
      return { keys: created.map((key) => toKeyRow(key, new Set())) }
    },

    async listNotices(call) {
      const accountId = getAccountId(call)
      const { memberId, actor } = call.who
      const since = memberId === null ? null : await members.findNoticesSeen(accountId, memberId)
      const records = await audit.listOfAccount(accountId, { actions: Object.keys(noticeKinds), since, limit: 50 })
      // An owner is not told about their own invitation. A new password, however, may be the work of another person.
      return records.filter(({ action, target }) => action !== 'account.invite-owner' || target !== actor).map(toNotice)
    },

    async confirmNotices(call) {
      if (call.who.memberId === null) return
      await members.setNoticesSeen(getAccountId(call), call.who.memberId, new Date(call.body.until))
      await call.audit('notices.confirm', call.body.until)
    },
  } satisfies Partial<Handlers>
}

const noticeKinds: Record<string, Notice['kind']> = {
  'account.invite-owner': 'owner-invited',
  'password.reset': 'password-reset',
}

const toNotice = ({ id, at, actor, action, target }: AuditRecord): Notice => ({
  id,
  at: at.toISOString(),
  kind: noticeKinds[action] ?? 'owner-invited',
  actor,
  target: target ?? null,
})

/** The link of an invitation. Browsers do not send the part after #, so the token reaches no log. */
export const toWelcomeUrl = ({ request }: Pick<Call<'inviteMember'>, 'request'>, token: string) =>
  `${toOrigin(request)}/console/welcome#${token}`

export const toAccountView = ({ balance, ...account }: Account): AccountView => ({
  id: account.id,
  name: account.name,
  plan: account.plan,
  credits_per_period: account.creditsPerPeriod,
  rate: toRateText(account.rate),
  account_rate: account.accountRate && toRateText(account.accountRate),
  max_keys: account.maxKeys,
  flags_sexy: account.flagsSexy,
  download_hosts: account.downloadHosts,
  created_at: account.createdAt.toISOString(),
  expires_at: account.expiresAt?.toISOString() ?? null,
  suspended_at: account.suspendedAt?.toISOString() ?? null,
  suspended_reason: account.suspendedReason,
  credit_limit: balance.creditLimit,
  credit_remaining: balance.creditRemaining,
  period_start: balance.period.start.toISOString(),
  period_end: balance.period.end.toISOString(),
})

const toMemberView = (member: AccountMember): MemberView => ({
  id: member.id,
  name: member.name,
  email: member.email,
  role: member.role,
  is_operator: member.isOperator,
  has_totp: member.totpConfirmedAt !== null,
  created_at: member.createdAt.toISOString(),
  last_seen_at: member.lastSeenAt?.toISOString() ?? null,
})

export type KeyHandlerDeps = { keys: KeyStore; members: MemberStore; registration: Registration; clock: Clock }

const hourMs = 3_600_000

/** Handlers for the API keys of an account. The key itself appears in one response and is not stored. */
export function makeKeyHandlers(deps: KeyHandlerDeps) {
  const { keys, members, registration, clock } = deps

  return {
    async listKeys(call) {
      const accountId = getAccountId(call)
      const emails = new Set((await members.listMembers(accountId)).map(({ email }) => email))
      return (await listOwn(accountId)).map((key) => toKeyRow(key, emails))
    },

    async createKey(call) {
      const { name, is_test: isTest = false } = call.body
      const expiresAt = readExpiry(call.body.expires_at, clock)
      const restrictions = readRestrictions(call.body)
      if (name.trim() === consoleKeyName) {
        throw new Problem({
          kind: 'validation',
          errors: { name: ['The console uses this name. Choose another.'] },
        })
      }
      const created = await registration
        .createKey(getAccountId(call), {
          name: name.trim(),
          expiresAt,
          isTest,
          restrictions,
          createdBy: call.who.actor,
        })
        .catch(toConflict)
      await call.audit('key.create', created.key.name, { detail: JSON.stringify(created.key.restrictions) })
      return { key: toKeyRow(created.key), api_key: created.apiKey }
    },

    async rotateKey(call) {
      const accountId = getAccountId(call)
      const old = await getKey(call)
      if (old.revokedAt !== null) {
        throw new Problem({ kind: 'conflict', detail: 'The key is revoked. Create a new one.' })
      }
      const created = await registration
        .createKey(accountId, { ...old, createdBy: call.who.actor, replacesId: old.id })
        .catch(toConflict)
      await keys.expireKey(accountId, old.id, call.body.overlap_hours * hourMs)
      await call.audit('key.rotate', old.name)
      return { key: toKeyRow(created.key), api_key: created.apiKey }
    },

    async restrictKey(call) {
      const key = await getKey(call)
      const restrictions = requireFound(await keys.restrictKey(key.id, readRestrictions(call.body)), 'key')
      await call.audit('key.restrict', key.name, { detail: JSON.stringify(restrictions) })
      return toKeyRow({ ...key, restrictions })
    },

    async revokeKey(call) {
      const key = await getKey(call)
      if (call.body.name !== key.name) {
        throw new Problem({ kind: 'validation', errors: { name: [`Enter the name of the key: ${key.name}`] } })
      }
      await keys.revokeKey(key.id)
      await call.audit('key.revoke', key.name)
    },
  } satisfies Partial<Handlers>

  async function listOwn(accountId: string) {
    return (await keys.listKeys(accountId)).filter(({ prefix }) => prefix !== consoleKeyPrefix)
  }

  async function getKey(call: Call<'rotateKey' | 'restrictKey' | 'revokeKey'>): Promise<ApiKey> {
    const ownKeys = await listOwn(getAccountId(call))
    const key = ownKeys.find(({ id }) => id === call.params.id)
    return requireFound(key, 'key')
  }
}

function readRestrictions({ allow = null, kinds = null, networks = null }: Partial<KeyRestrictions>): KeyRestrictions {
  const read = networks?.map((network) => readNetwork(network)) ?? null
  const wrong = networks?.filter((_, index) => read?.[index] === undefined) ?? []
  if (wrong.length === 0) return { allow, kinds, networks: read as string[] | null }
  const message = `${wrong.join(', ')}: enter networks such as 10.0.0.0/8 or 2001:db8::/32.`
  throw new Problem({ kind: 'validation', errors: { networks: [message] } })
}

/** `members` are the email addresses of the account; by default the creator is one of them. */
const toKeyRow = (key: ApiKey, members?: ReadonlySet<string>): KeyRow => ({
  id: key.id,
  name: key.name,
  prefix: key.prefix,
  is_test: key.isTest,
  allow: key.restrictions.allow,
  kinds: key.restrictions.kinds,
  networks: key.restrictions.networks,
  created_at: key.createdAt.toISOString(),
  expires_at: key.expiresAt?.toISOString() ?? null,
  last_used_at: key.lastUsedAt?.toISOString() ?? null,
  revoked_at: key.revokedAt?.toISOString() ?? null,
  created_by: key.createdBy,
  creator_left: key.createdBy !== null && members?.has(key.createdBy) === false,
})
