import type { AccountView, Member as MemberView, Notice } from '@assay/contract/admin'
import { type Account, toRateText } from '../domain/accounts/account.ts'
import type { Invitations } from '../domain/console/invitations.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { AuditLog, AuditRecord } from '../domain/ports/audit-log.ts'
import type { KeyStore } from '../domain/ports/key-store.ts'
import type { AccountMember, MemberStore } from '../domain/ports/member-store.ts'
import { Problem } from '../domain/problem.ts'
import { toOrigin } from '../http/request.ts'
import { type Call, getAccountId, getId, type Handlers, requireFound, requireRemoved } from './call.ts'
import { toKeyRow } from './key-handlers.ts'

export type AccountHandlerDeps = {
  accounts: AccountStore
  members: MemberStore
  keys: KeyStore
  audit: AuditLog
  invitations: Invitations
}

/** Handlers for the account and its members. */
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
