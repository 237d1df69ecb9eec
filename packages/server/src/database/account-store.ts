import { type Kysely, sql, type Transaction } from 'kysely'
import { type Account, periodAt } from '../domain/accounts/account.ts'
import type { AccountStore, NewAccount } from '../domain/ports/account-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { changeAccount } from './change-account.ts'
import { insertKey } from './insert-key.ts'
import type { Database } from './open-database.ts'
import { rollPeriod } from './roll-period.ts'
import { runTransaction } from './run-transaction.ts'
import type { Tables } from './tables.ts'

const numberOutOfRange = '22003'

export function makeAccountStore(deps: Pick<Database, 'pool' | 'kysely'>): AccountStore {
  const { kysely, pool } = deps

  return {
    async createAccount(account) {
      await kysely.transaction().execute((trx) => insertAccount(trx, account))
      return getAccount(account.id)
    },

    async createFirstAccount(account) {
      const created = await kysely.transaction().execute(async (trx) => {
        // Nodes that start together all see an empty table; the lock lets them look one after the other.
        await sql`lock table accounts in share row exclusive mode`.execute(trx)
        const { there } = await trx
          .selectNoFrom((eb) => eb.exists(eb.selectFrom('accounts').select('id')).as('there'))
          .executeTakeFirstOrThrow()
        if (there) return false
        await insertAccount(trx, account)
        return true
      })
      return created ? getAccount(account.id) : undefined
    },

    findAccount,

    async listAccounts() {
      await rollAllOver()
      const rows = await selectAccounts(kysely).orderBy('accounts.created_at').orderBy('accounts.id').execute()
      return rows.map(toAccount)
    },

    async findDownloadHosts(id) {
      const { rows } = await pool.query<{ download_hosts: string[] | null }>({
        name: 'find-download-hosts',
        text: 'select download_hosts from accounts where id = $1',
        values: [id],
      })
      return rows[0]?.download_hosts ?? null
    },

    async updateAccount(id, change) {
      await rollIfOver(id)
      const found = await refusingTooMany(kysely.transaction().execute((trx) => changeAccount(trx, id, change)))
      return found ? getAccount(id) : undefined
    },

    async grantCredits(id, amount, note) {
      await rollIfOver(id)
      const granting = pool.query(
        `with granted as (
           update balances set credit_limit = credit_limit + $2, credit_remaining = credit_remaining + $2
           where account_id = $1 returning account_id, credit_remaining
         )
         insert into credit_ledger (account_id, kind, amount, balance, note)
         select account_id, 'grant', $2, credit_remaining, $3 from granted returning id`,
        [id, amount, note],
      )
      const { rowCount } = await refusingTooMany(granting)
      return rowCount === 0 ? undefined : getAccount(id)
    },

    async listLedger(id, limit) {
      const rows = await kysely
        .selectFrom('credit_ledger')
        .select(['id', 'kind', 'amount', 'balance', 'scan_id', 'note', 'at'])
        .where('account_id', '=', id)
        .orderBy('id', 'desc')
        .limit(limit)
        .execute()
      return rows.map(({ scan_id, ...row }) => ({ ...row, scanId: scan_id }))
    },

    async listWebhookSecrets(id) {
      const { rows } = await pool.query<{ secret: string }>(
        `select secret from accounts, lateral (values (webhook_secret, true),
           (previous_webhook_secret, previous_webhook_secret_until > now())) as s (secret, signs)
         where id = $1 and signs`,
        [id],
      )
      return rows.map(({ secret }) => secret)
    },

    async findWebhookRotation(id) {
      const { rows } = await pool.query<{ until: Date | null; at: Date | null }>(
        `select previous_webhook_secret_until as until, previous_webhook_secret_until - interval '1 day' as at
         from accounts where id = $1`,
        [id],
      )
      const [row] = rows
      const isSigning = row?.until !== null && row?.until !== undefined && row.until > new Date()
      return { rotatedAt: row?.at ?? null, previousUntil: isSigning ? row.until : null }
    },

    async rotateWebhookSecret(id, secret, previousUntil) {
      const { numUpdatedRows } = await kysely
        .updateTable('accounts')
        .set((eb) => ({
          previous_webhook_secret: eb.ref('webhook_secret'),
          previous_webhook_secret_until: previousUntil,
          webhook_secret: secret,
        }))
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      return numUpdatedRows > 0n
    },

    async listUnbalanced() {
      const text = `select account_id as id, credit_remaining as balance, coalesce(sum(amount), 0)::float8 as ledger
         from balances left join credit_ledger using (account_id)
         group by account_id, credit_remaining having coalesce(sum(amount), 0) <> credit_remaining
         order by account_id limit 100`
      // All of the ledger, so it may be read from end to end.
      const settings = ['enable_seqscan = on']
      const { rows } = await runTransaction<{ id: string; balance: number; ledger: number }>(pool, [{ text }], {
        settings,
      })
      return rows
    },
  }

  async function findAccount(id: string): Promise<Account | undefined> {
    await rollIfOver(id)
    const row = await selectAccounts(kysely).where('accounts.id', '=', id).executeTakeFirst()
    return row === undefined ? undefined : toAccount(row)
  }

  async function getAccount(id: string): Promise<Account> {
    const account = await findAccount(id)
    if (account === undefined) throw new Error(`Account ${id} vanished while it was being changed`)
    return account
  }

  /** Whoever looks at an account sees the period that is current, as a request of its own would. */
  async function rollIfOver(id: string) {
    const { rows } = await pool.query<{ at: Date }>(
      'select now() as at from balances where account_id = $1 and period_end <= now()',
      [id],
    )
    const [over] = rows
    if (over !== undefined) await rollPeriod(pool, id, (anchor) => periodAt(anchor, over.at))
  }

  async function rollAllOver() {
    const { rows } = await pool.query<{ account_id: string; at: Date }>(
      'select account_id, now() as at from balances where period_end <= now()',
    )
    for (const { account_id, at } of rows) await rollPeriod(pool, account_id, (anchor) => periodAt(anchor, at))
  }
}

/** The interface shows credits as 32-bit numbers, and the columns are no wider. */
async function refusingTooMany<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: { code?: string }) => {
    if (error.code !== numberOutOfRange) throw error
    throw new OperatorMistake('The account would have more credits than the interface can show (2147483647).')
  })
}

async function insertAccount(trx: Transaction<Tables>, account: NewAccount) {
  // To the millisecond, because that is as much as a Date carries and periods are compared exactly.
  const { rows } = await sql<{ now: Date }>`select date_trunc('milliseconds', now()) as now`.execute(trx)
  const now = rows[0]?.now ?? new Date()
  const period = periodAt(now, now)
  await trx
    .insertInto('accounts')
    .values({
      id: account.id,
      name: account.name,
      plan: account.plan,
      credits_per_period: account.credits,
      rate_requests: account.rate?.requests ?? null,
      rate_period_seconds: account.rate?.periodSeconds ?? null,
      created_at: now,
      expires_at: account.expiresAt,
      flags_sexy: account.flagsSexy,
      download_hosts: account.downloadHosts,
      webhook_secret: account.webhookSecret,
    })
    .execute()
  const plan = await trx.selectFrom('plans').selectAll().where('name', '=', account.plan).executeTakeFirstOrThrow()
  const credits = account.credits ?? plan.credits_per_period
  await trx
    .insertInto('balances')
    .values({
      account_id: account.id,
      allocated: credits,
      credit_limit: credits,
      credit_remaining: credits,
      period_anchor: now,
      period_start: period.start,
      period_end: period.end,
    })
    .execute()
  await trx
    .insertInto('credit_ledger')
    .values({ account_id: account.id, kind: 'opening', amount: credits, balance: credits, scan_id: null, note: null })
    .execute()
  await insertKey(trx, account.id, account.key)
}

function selectAccounts(db: Kysely<Tables>) {
  return db
    .selectFrom('accounts')
    .innerJoin('plans', 'plans.name', 'accounts.plan')
    .innerJoin('balances', 'balances.account_id', 'accounts.id')
    .select(['accounts.id', 'accounts.name', 'accounts.plan', 'accounts.created_at'])
    .select(['accounts.flags_sexy', 'accounts.download_hosts'])
    .select(['accounts.expires_at', 'accounts.suspended_at', 'balances.credit_limit', 'balances.credit_remaining'])
    .select(['balances.period_start', 'balances.period_end'])
    .select((eb) => [
      eb.fn.coalesce('accounts.credits_per_period', 'plans.credits_per_period').as('credits_per_period'),
      eb.fn.coalesce('accounts.rate_requests', 'plans.rate_requests').as('rate_requests'),
      eb.fn.coalesce('accounts.rate_period_seconds', 'plans.rate_period_seconds').as('rate_period_seconds'),
    ])
}

type AccountRow = Awaited<ReturnType<ReturnType<typeof selectAccounts>['executeTakeFirstOrThrow']>>

function toAccount(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    plan: row.plan,
    creditsPerPeriod: row.credits_per_period,
    rate: { requests: row.rate_requests, periodSeconds: row.rate_period_seconds },
    flagsSexy: row.flags_sexy,
    downloadHosts: row.download_hosts,
    balance: {
      creditLimit: row.credit_limit,
      creditRemaining: row.credit_remaining,
      period: { start: row.period_start, end: row.period_end },
    },
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    suspendedAt: row.suspended_at,
  }
}
