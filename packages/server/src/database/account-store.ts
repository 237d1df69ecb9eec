import type { Pool } from 'pg'
import type { Account, LedgerEntry, Period, Plan, Rate } from '../domain/accounts/account.ts'
import type { AccountChange, AccountStore, NewAccount, PlanStore } from '../domain/ports/account-store.ts'
import type { Sealer } from '../domain/ports/secret-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { grantCredits, listLedger, listUnbalanced, openBalance, reallocate, rollEndedPeriods } from './balances.ts'
import { isForeignKeyViolation, isNumberOutOfRange } from './database-error.ts'
import { insertKey } from './key-store.ts'
import { changeRows, findRow, inTransaction, listRows, type Queryable } from './query.ts'
import { makeWebhookSecrets, webhookSecretOf } from './secret-stores.ts'

export function makeAccountStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): AccountStore {
  return {
    async createAccount(account) {
      const sealed = await sealSecret(account)
      await inTransaction(pool, (client) => insertAccount(client, account, sealed))
      return getAccount(account.id)
    },

    async createFirstAccount(account) {
      const sealed = await sealSecret(account)
      const isCreated = await inTransaction(pool, async (client) => {
        await lockAccounts(client)
        if (await hasAccounts(client)) return false
        await insertAccount(client, account, sealed)
        return true
      })
      return isCreated ? getAccount(account.id) : undefined
    },

    findAccount,

    async listAccounts() {
      await rollEndedPeriods(pool)
      const rows = await listRows<AccountRow>(pool, `${selectAccounts} order by accounts.created_at, accounts.id`)
      return rows.map(toAccount)
    },

    async findDownloadHosts(id) {
      return (await findRow<{ hosts: string[] | null }>(pool, findDownloadHosts, [id]))?.hosts ?? null
    },

    async findVerdictPolicy(id) {
      return (await findRow<{ policy: string | null }>(pool, findVerdictPolicy, [id]))?.policy ?? null
    },

    async updateAccount(id, change) {
      await rollEndedPeriods(pool, id)
      const isFound = await rejectTooManyCredits(inTransaction(pool, (client) => changeAccount(client, id, change)))
      return isFound ? getAccount(id) : undefined
    },

    async grantCredits(id, amount, note) {
      await rollEndedPeriods(pool, id)
      return (await rejectTooManyCredits(grantCredits(pool, id, amount, note))) ? getAccount(id) : undefined
    },

    listLedger: (id, limit) => listRows<LedgerEntry>(pool, listLedger, [id, limit]),

    ...makeWebhookSecrets({ pool, sealer }),

    listUnbalanced: () =>
      // The statement reads the whole ledger, so a sequential scan is right here.
      inTransaction(pool, (client) => listRows(client, listUnbalanced), { settings: ['enable_seqscan = on'] }),
  }

  function sealSecret({ id, webhookSecret }: NewAccount): Promise<Buffer> {
    return sealer.seal(Buffer.from(webhookSecret), webhookSecretOf(id))
  }

  async function findAccount(id: string): Promise<Account | undefined> {
    await rollEndedPeriods(pool, id)
    const row = await findRow<AccountRow>(pool, `${selectAccounts} where accounts.id = $1`, [id])
    return row && toAccount(row)
  }

  async function getAccount(id: string): Promise<Account> {
    const account = await findAccount(id)
    if (account === undefined) throw new Error(`Account ${id} vanished while it was being changed`)
    return account
  }
}

/** Explains an overflow to the operator: credits are 32-bit numbers in the interface and in the columns. */
async function rejectTooManyCredits<T>(work: Promise<T>): Promise<T> {
  return work.catch((error) => {
    if (!isNumberOutOfRange(error)) throw error
    throw new OperatorMistake('The account would have more credits than the interface can show (2147483647).')
  })
}

/** Lets nodes that start together check one after the other whether the first account exists. */
const lockAccounts = (client: Queryable) => client.query('lock table accounts in share row exclusive mode')

const hasAccounts = async (client: Queryable): Promise<boolean> =>
  (await findRow(client, 'select from accounts limit 1')) !== undefined

async function insertAccount(client: Queryable, account: NewAccount, sealedSecret: Buffer) {
  const { id, name, plan, credits, rate, expiresAt, flagsSexy, downloadHosts, verdictPolicy, key } = account
  const { requests, periodSeconds } = rate ?? { requests: null, periodSeconds: null }
  // The creation time has the precision of a JavaScript date, because ends of periods are compared exactly.
  const inserted = await findRow<{ now: Date }>(
    client,
    `insert into accounts (id, name, plan, credits_per_period, rate_requests, rate_period_seconds, expires_at,
       flags_sexy, download_hosts, verdict_policy, webhook_secret, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, date_trunc('milliseconds', now()))
     returning created_at as now`,
    [
      id,
      name,
      plan,
      credits,
      requests,
      periodSeconds,
      expiresAt,
      flagsSexy,
      downloadHosts,
      verdictPolicy,
      sealedSecret,
    ],
  )
  if (inserted !== undefined) await openBalance(client, id, inserted.now, inserted.now)
  await insertKey(client, id, key)
}

/** Returns false when there is no such account. */
async function changeAccount(client: Queryable, id: string, change: AccountChange): Promise<boolean> {
  const { suspended, credits, rate, plan } = change
  const values = Object.entries({
    name: change.name,
    plan,
    credits_per_period: credits,
    rate_requests: rate === null ? null : rate?.requests,
    rate_period_seconds: rate === null ? null : rate?.periodSeconds,
    expires_at: change.expiresAt,
    flags_sexy: change.flagsSexy,
    download_hosts: change.downloadHosts,
    revision_url: change.revisionUrl,
    verdict_policy: change.verdictPolicy,
    suspended_reason: suspended === false ? undefined : change.suspendedReason,
  }).filter(([, value]) => value !== undefined)
  const assignments = values.map(([column], i) => `${column} = $${i + 2}`)
  // A second suspension keeps the time of the first.
  if (suspended !== undefined) {
    assignments.push(`suspended_at = ${suspended ? 'coalesce(suspended_at, now())' : 'null'}`)
    if (!suspended) assignments.push('suspended_reason = null')
  }
  const text = `update accounts set ${['id = id', ...assignments].join(', ')} where id = $1`
  const updated = await changeRows(client, text, [id, ...values.map(([, value]) => value)])
  if (updated > 0 && (plan !== undefined || credits !== undefined)) await reallocate(client, id)
  return updated > 0
}

const findDownloadHosts = `
-- name: find-download-hosts
select download_hosts as hosts from accounts where id = $1
`

const findVerdictPolicy = `
-- name: find-verdict-policy
select verdict_policy as policy from accounts where id = $1
`

const selectAccounts = `
select accounts.id, accounts.name, plan, flags_sexy as "flagsSexy", download_hosts as "downloadHosts",
  revision_url as "revisionUrl",
  verdict_policy as "verdictPolicy",
  accounts.created_at as "createdAt", expires_at as "expiresAt",
  coalesce(expires_at <= now(), false) as "isExpired", suspended_at as "suspendedAt",
  suspended_reason as "suspendedReason",
  coalesce(accounts.credits_per_period, plans.credits_per_period) as "creditsPerPeriod",
  coalesce(accounts.rate_requests, plans.rate_requests) as requests,
  coalesce(accounts.rate_period_seconds, plans.rate_period_seconds) as "periodSeconds",
  account_rate_requests as "accountRequests", account_rate_period_seconds as "accountSeconds", max_keys as "maxKeys",
  credit_limit as "creditLimit", credit_remaining as "creditRemaining", period_start as start, period_end as "end"
from accounts
join plans on plans.name = accounts.plan
join balances on balances.account_id = accounts.id
`

type AccountRow = Omit<Account, 'rate' | 'accountRate' | 'balance'> &
  Rate &
  AccountRateRow &
  Omit<Account['balance'], 'period'> &
  Period

const toAccount = ({
  requests,
  periodSeconds,
  accountRequests,
  accountSeconds,
  creditLimit,
  creditRemaining,
  start,
  end,
  ...account
}: AccountRow): Account => ({
  ...account,
  rate: { requests, periodSeconds },
  accountRate: toAccountRate({ accountRequests, accountSeconds }),
  balance: { creditLimit, creditRemaining, period: { start, end } },
})

export function makePlanStore({ pool }: { pool: Pool }): PlanStore {
  return {
    async savePlan({ name, creditsPerPeriod, rate, accountRate, maxKeys }) {
      await changeRows(
        pool,
        `insert into plans (name, credits_per_period, rate_requests, rate_period_seconds, account_rate_requests,
           account_rate_period_seconds, max_keys)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (name) do update set credits_per_period = excluded.credits_per_period,
           rate_requests = excluded.rate_requests, rate_period_seconds = excluded.rate_period_seconds,
           account_rate_requests = excluded.account_rate_requests,
           account_rate_period_seconds = excluded.account_rate_period_seconds, max_keys = excluded.max_keys`,
        [
          name,
          creditsPerPeriod,
          rate.requests,
          rate.periodSeconds,
          accountRate?.requests ?? null,
          accountRate?.periodSeconds ?? null,
          maxKeys,
        ],
      )
    },

    async findPlan(name) {
      const row = await findRow<PlanRow>(pool, `${selectPlans} where name = $1`, [name])
      return row && toPlan(row)
    },

    async listPlans() {
      return (await listRows<PlanRow>(pool, `${selectPlans} order by credits_per_period, name`)).map(toPlan)
    },

    async deletePlan(name) {
      try {
        return (await changeRows(pool, 'delete from plans where name = $1', [name])) > 0
      } catch (error) {
        if (!isForeignKeyViolation(error)) throw error
        throw new OperatorMistake(`Accounts are on the plan ${name}. Move them first: accounts update ID --plan OTHER.`)
      }
    },
  }
}

const selectPlans = `
select name, credits_per_period as "creditsPerPeriod", rate_requests as requests, rate_period_seconds as "periodSeconds",
  account_rate_requests as "accountRequests", account_rate_period_seconds as "accountSeconds", max_keys as "maxKeys"
from plans`

type PlanRow = Omit<Plan, 'rate' | 'accountRate'> & Rate & AccountRateRow
type AccountRateRow = { accountRequests: number | null; accountSeconds: number | null }

const toPlan = ({ requests, periodSeconds, accountRequests, accountSeconds, ...plan }: PlanRow): Plan => ({
  ...plan,
  rate: { requests, periodSeconds },
  accountRate: toAccountRate({ accountRequests, accountSeconds }),
})

const toAccountRate = ({ accountRequests, accountSeconds }: AccountRateRow): Rate | null =>
  accountRequests === null || accountSeconds === null
    ? null
    : { requests: accountRequests, periodSeconds: accountSeconds }

/**
 * Records whether this is a test installation, and returns what was recorded. The first service that starts decides,
 * and nothing changes it later. A database that has accounts by then is not a test installation.
 */
export async function claimInstallation({ pool }: { pool: Pool }, { isTest }: { isTest: boolean }): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    await lockAccounts(client)
    const recorded = await findInstallation(client)
    if (recorded !== undefined) return recorded.isTest
    const decided = isTest && !(await hasAccounts(client))
    await changeRows(client, 'insert into installation (is_test) values ($1)', [decided])
    return decided
  })
}

export const isTestInstallation = async ({ pool }: { pool: Pool }): Promise<boolean> =>
  (await findInstallation(pool))?.isTest === true

const findInstallation = (db: Queryable) =>
  findRow<{ isTest: boolean }>(db, 'select is_test as "isTest" from installation')
