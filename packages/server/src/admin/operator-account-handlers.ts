import { findRate, toRateText } from '../domain/accounts/account.ts'
import type { Registration } from '../domain/accounts/registration.ts'
import type { Invitations } from '../domain/console/invitations.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { PlanStore } from '../domain/ports/plan-store.ts'
import { Problem } from '../domain/problem.ts'
import { toAccountView, toWelcomeUrl } from './account-handlers.ts'
import { getId, type Handlers, requireFound, toConflict } from './call.ts'

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
