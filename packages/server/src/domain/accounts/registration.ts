import { v7 as newId } from 'uuid'
import type { AccountStore, KeyStore, NewAccount, NewApiKey, PlanStore } from '../ports/account-store.ts'
import { OperatorMistake } from '../problem.ts'
import type { Account, ApiKey, Rate } from './account.ts'
import { type KeyRestrictions, newApiKey, newWebhookSecret, toKeyDigest, toKeyPrefix, unrestricted } from './keys.ts'

export type AccountRequest = {
  name: string
  plan: string
  credits?: number
  rate?: Rate
  expiresAt?: Date
  /** True by default. */
  flagsSexy?: boolean
  downloadHosts?: string[]
  verdictPolicy?: string
  /** Makes the first key a test key. */
  isTest?: boolean
  /** A key that the operator chose; generated when undefined, as is the secret. */
  apiKey?: string
  webhookSecret?: string
}

/** A new account with its two secrets in clear. They are stored nowhere and shown once. */
export type RegisteredAccount = { account: Account; apiKey: string; webhookSecret: string }

/** How long the previous secret keeps signing after a rotation. */
const previousSecretMs = 24 * 3_600_000

type Deps = {
  accounts: AccountStore
  keys: KeyStore
  plans: PlanStore
  /** In a test installation every key is a test key. */
  isTestInstallation?: boolean
}

/** Creates accounts, keys and secrets. */
export function makeRegistration(deps: Deps) {
  const isTestKey = (requested: boolean | undefined) => requested === true || deps.isTestInstallation === true

  return {
    async register(request: AccountRequest): Promise<RegisteredAccount> {
      const { account, apiKey, webhookSecret } = await prepare(request)
      return { account: await deps.accounts.createAccount(account), apiKey, webhookSecret }
    },

    /** Returns undefined, and changes nothing, when there is an account already. */
    async registerFirst(request: AccountRequest): Promise<RegisteredAccount | undefined> {
      const { account, apiKey, webhookSecret } = await prepare(request)
      const created = await deps.accounts.createFirstAccount(account)
      return created === undefined ? undefined : { account: created, apiKey, webhookSecret }
    },

    async createKey(
      accountId: string,
      request: {
        name: string
        expiresAt: Date | null
        isTest?: boolean
        restrictions?: KeyRestrictions
        createdBy?: string
        replacesId?: string
      },
    ): Promise<{ key: ApiKey; apiKey: string }> {
      const { name, expiresAt, restrictions = unrestricted, createdBy = null } = request
      const isTest = isTestKey(request.isTest)
      const apiKey = newApiKey({ isTest })
      const { replacesId } = request
      const key = await deps.keys.createKey(
        accountId,
        toNewKey(apiKey, { name, expiresAt, isTest, restrictions, createdBy }),
        {
          replacesId,
        },
      )
      if (!('outcome' in key)) return { key, apiKey }
      const limit = key.maxKeys === 1 ? 'one active key' : `${key.maxKeys} active keys`
      throw new OperatorMistake(`The plan of the account allows ${limit}. Revoke a key first.`)
    },

    /** Returns undefined when there is no such account. */
    async rotateWebhookSecret(accountId: string): Promise<{ webhookSecret: string; previousUntil: Date } | undefined> {
      const webhookSecret = newWebhookSecret()
      const previousUntil = await deps.accounts.rotateWebhookSecret(accountId, webhookSecret, previousSecretMs)
      return previousUntil && { webhookSecret, previousUntil }
    },

    requirePlan,
  }

  async function prepare(request: AccountRequest) {
    await requirePlan(request.plan)
    const isTest = isTestKey(request.isTest)
    const apiKey = request.apiKey ?? newApiKey({ isTest })
    const webhookSecret = request.webhookSecret ?? newWebhookSecret()
    const account: NewAccount = {
      id: newId(),
      name: request.name,
      plan: request.plan,
      credits: request.credits ?? null,
      rate: request.rate ?? null,
      expiresAt: request.expiresAt ?? null,
      flagsSexy: request.flagsSexy ?? true,
      downloadHosts: request.downloadHosts ?? null,
      verdictPolicy: request.verdictPolicy ?? null,
      webhookSecret,
      key: toNewKey(apiKey, { name: 'default', expiresAt: null, isTest, restrictions: unrestricted, createdBy: null }),
    }
    return { account, apiKey, webhookSecret }
  }

  async function requirePlan(name: string) {
    if ((await deps.plans.findPlan(name)) !== undefined) return
    const names = (await deps.plans.listPlans()).map((plan) => plan.name)
    throw new OperatorMistake(`There is no plan ${name}. The plans are: ${names.join(', ')}.`)
  }
}

const toNewKey = (apiKey: string, attributes: Omit<NewApiKey, 'id' | 'prefix' | 'digest'>): NewApiKey => ({
  id: newId(),
  prefix: toKeyPrefix(apiKey),
  digest: toKeyDigest(apiKey),
  ...attributes,
})

export type Registration = ReturnType<typeof makeRegistration>
