import type { Operator } from '@assay/contract/admin'
import { findRate, toRateText } from '../domain/accounts/account.ts'
import type { Registration } from '../domain/accounts/registration.ts'
import type { Invitations } from '../domain/console/invitations.ts'
import type { AccountStore, PlanStore } from '../domain/ports/account-store.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { Member, MemberStore } from '../domain/ports/member-store.ts'
import type { Operations, QueuedJob } from '../domain/ports/operations.ts'
import { Problem } from '../domain/problem.ts'
import { toAccountView, toWelcomeUrl } from './account-handlers.ts'
import { type Call, getId, type Handlers, listPage, requireFound, requireRemoved, toConflict } from './call.ts'

export type OperatorHandlerDeps = {
  accounts: AccountStore
  members: MemberStore
  invitations: Invitations
}

/** Handlers of operators for the people in the console: owners of accounts, and other operators. */
export function makeOperatorHandlers({ accounts, members, invitations }: OperatorHandlerDeps) {
  return {
    async inviteOwner(call) {
      const accountId = getId(call, 'account')
      requireFound(await accounts.findAccount(accountId), 'account')
      const { email } = call.body
      const { id, token, expiresAt } = await invitations.invite({ role: 'owner', accountId, email })
      await call.audit('account.invite-owner', email, { accountId })
      return { id, url: toWelcomeUrl(call, token), expires_at: expiresAt.toISOString() }
    },

    listOperators: async () => (await members.listOperators()).map(toOperator),

    async suspendOperator(call) {
      const { id, email } = await getOther(call)
      const { suspended } = call.body
      requireRemoved(await members.suspendOperator(id, suspended), 'operator')
      await call.audit(suspended ? 'operator.suspend' : 'operator.resume', email)
    },

    async removeOperator(call) {
      const { id, email } = await getOther(call)
      requireRemoved(await members.removeOperator(id), 'operator')
      await call.audit('operator.remove', email)
    },
  } satisfies Partial<Handlers>

  /** Returns the operator of the path. Operators cannot lock themselves out. */
  async function getOther(call: Call<'suspendOperator' | 'removeOperator'>): Promise<Member> {
    const id = getId(call, 'operator')
    if (id === call.who.memberId) {
      throw new Problem({ kind: 'conflict', detail: 'You cannot do this to yourself. Ask another operator.' })
    }
    return requireFound(
      (await members.listOperators()).find((operator) => operator.id === id),
      'operator',
    )
  }
}

const toOperator = (operator: Member): Operator => ({
  id: operator.id,
  name: operator.name,
  email: operator.email,
  has_totp: operator.totpConfirmedAt !== null,
  created_at: operator.createdAt.toISOString(),
  last_seen_at: operator.lastSeenAt?.toISOString() ?? null,
  suspended_at: operator.suspendedAt?.toISOString() ?? null,
})

export type OperatorAccountDeps = {
  accounts: AccountStore
  plans: PlanStore
  registration: Registration
  invitations: Invitations
}

const ledgerRows = 200

/** Handlers of operators for accounts, their credits and their plans. */
export function makeOperatorAccountHandlers(deps: OperatorAccountDeps) {
  const { accounts, plans, registration, invitations } = deps

  return {
    listAccounts: async () => (await accounts.listAccounts()).map(toAccountView),

    async createAccount(call) {
      const { name, plan, credits, rate, owner_email: email } = call.body
      await requirePlan(plan)
      const registered = await registration.register({
        name: name.trim(),
        plan,
        ...(credits === undefined || credits === null ? {} : { credits }),
        ...(rate === undefined || rate === null ? {} : { rate: getRate(rate) }),
      })
      const { id } = registered.account
      const invitation = email && (await invitations.invite({ role: 'owner', accountId: id, email }))
      await call.audit('account.create', id, { accountId: id, detail: name })
      return {
        account: toAccountView(registered.account),
        api_key: registered.apiKey,
        webhook_secret: registered.webhookSecret,
        invitation_url: invitation ? toWelcomeUrl(call, invitation.token) : null,
      }
    },

    async updateAccount(call) {
      const id = getId(call, 'account')
      const { name, plan, credits, rate, suspended, suspended_reason, expires_at, flags_sexy } = call.body
      if (plan !== undefined) await requirePlan(plan)
      const change = {
        ...(name === undefined ? {} : { name: name.trim() }),
        ...(credits === undefined ? {} : { credits }),
        ...(suspended === undefined ? {} : { suspended }),
        ...(suspended_reason === undefined ? {} : { suspendedReason: suspended_reason?.trim() ?? null }),
        ...(plan === undefined ? {} : { plan }),
        ...(rate === undefined ? {} : { rate: rate === null ? null : getRate(rate) }),
        ...(expires_at === undefined ? {} : { expiresAt: expires_at === null ? null : new Date(expires_at) }),
        ...(flags_sexy === undefined ? {} : { flagsSexy: flags_sexy }),
      }
      const account = requireFound(await accounts.updateAccount(id, change), 'account')
      await call.audit('account.update', id, { accountId: id, detail: JSON.stringify(change) })
      return toAccountView(account)
    },

    async grantCredits(call) {
      const accountId = getId(call, 'account')
      const { amount, note } = call.body
      const granted = await accounts.grantCredits(accountId, amount, note).catch(toConflict)
      const account = requireFound(granted, 'account')
      await call.audit('credits.grant', accountId, { accountId, detail: `${amount}: ${note}` })
      return toAccountView(account)
    },

    async listLedger(call) {
      const entries = await accounts.listLedger(getId(call, 'account'), ledgerRows)
      return entries.map(({ scanId, at, ...entry }) => ({ ...entry, scan_id: scanId, at: at.toISOString() }))
    },

    async listPlans() {
      const all = await accounts.listAccounts()
      return (await plans.listPlans()).map(({ name, creditsPerPeriod, rate, accountRate, maxKeys }) => ({
        name,
        credits_per_period: creditsPerPeriod,
        rate: toRateText(rate),
        account_rate: accountRate && toRateText(accountRate),
        max_keys: maxKeys,
        accounts: all.filter(({ plan }) => plan === name).length,
      }))
    },

    async savePlan(call) {
      const name = (call.params.name ?? '').trim()
      if (name === '' || name.length > 200) {
        throw new Problem({ kind: 'validation', errors: { name: ['Enter a name of 1 to 200 characters.'] } })
      }
      const { credits_per_period: creditsPerPeriod, rate, account_rate, max_keys: maxKeys = null } = call.body
      const accountRate = account_rate ? getRate(account_rate, 'account_rate') : null
      await plans.savePlan({ name, creditsPerPeriod, rate: getRate(rate), accountRate, maxKeys })
      await call.audit('plan.save', name, { detail: JSON.stringify(call.body) })
    },

    async deletePlan(call) {
      const { name = '' } = call.params
      requireFound(await plans.deletePlan(name).catch(toConflict), 'plan')
      await call.audit('plan.delete', name)
    },
  } satisfies Partial<Handlers>

  async function requirePlan(name: string) {
    if ((await plans.findPlan(name)) !== undefined) return
    throw new Problem({ kind: 'validation', errors: { plan: [`There is no plan ${name}.`] } })
  }
}

function getRate(text: string, field = 'rate') {
  const rate = findRate(text)
  if (rate === undefined)
    throw new Problem({ kind: 'validation', errors: { [field]: ['Enter a rate such as 600/1m.'] } })
  return rate
}

export type JobHandlerDeps = {
  operations: Operations
  deliveries: DeliveryStore
  /** Wakes the workers after a job becomes available. */
  onQueued(): void
  /** Wakes the delivery worker after deliveries become due. */
  onReplayed(): void
}

/** A job that has waited for this long is shown as stuck. */
const stuckMs = 5 * 60_000
/** The age of the deliveries by which hosts count as failing. */
const failingHostsMs = 30 * 86_400_000
const maxReplayed = 10_000

/** Handlers for the jobs and webhooks of all accounts. */
export function makeJobHandlers(deps: JobHandlerDeps) {
  const { operations, deliveries } = deps

  return {
    async listJobs({ query }) {
      const { state } = query
      return listPage(
        query,
        ({ cursor, limit }) => operations.listJobs({ state, stuckMs, after: cursor, limit }),
        toJobRow,
      )
    },

    async retryJob(call) {
      const id = getId(call, 'job')
      if (!(await operations.releaseJob(id))) {
        throw new Problem({
          kind: 'conflict',
          detail: 'This job is not delayed: it is waiting, running or completed.',
        })
      }
      deps.onQueued()
      await call.audit('job.retry', id)
    },

    async listFailingHosts() {
      const hosts = await operations.listFailingHosts(failingHostsMs)
      return hosts.map(({ failingSince, ...host }) => ({ ...host, failing_since: failingSince?.toISOString() ?? null }))
    },

    async pauseHost(call) {
      const { host, paused } = call.body
      requireFound((await operations.pauseHost(host, paused)) > 0, 'receiver')
      if (!paused) deps.onReplayed()
      await call.audit(paused ? 'host.pause' : 'host.resume', host)
    },

    async replayHost(call) {
      const { host, since } = call.body
      const ids = await operations.listFailedDeliveries(host, new Date(since), maxReplayed)
      const replayed = await deliveries.replay({ ids })
      deps.onReplayed()
      await call.audit('host.replay', host, { detail: `${replayed} since ${since}` })
      return { replayed }
    },
  } satisfies Partial<Handlers>
}

const toJobRow = (job: QueuedJob) => ({
  id: job.id,
  account_id: job.accountId,
  account_name: job.accountName,
  scan_type: job.kind,
  state: job.state,
  attempts: job.attempts,
  content_length: job.contentLength,
  created_at: job.createdAt.toISOString(),
  held_until: job.heldUntil?.toISOString() ?? null,
})
