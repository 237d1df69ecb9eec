import { makeAccountStore, makePlanStore } from '../../src/database/account-store.ts'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { makeKeyStore } from '../../src/database/key-store.ts'
import { makeScanStore } from '../../src/database/scan-store.ts'
import { toKeyDigest } from '../../src/domain/accounts/keys.ts'
import { type AccountRequest, makeRegistration } from '../../src/domain/accounts/registration.ts'
import { openTestDatabase } from './test-database.ts'
import { testSealer } from './test-sealer.ts'

/** Opens all stores on a database of their own, with the steps that tests of accounts share. */
export async function openTestStores() {
  const database = await openTestDatabase()
  const accounts = makeAccountStore({ pool: database.pool, sealer: testSealer })
  const keys = makeKeyStore(database)
  const plans = makePlanStore(database)
  const registration = makeRegistration({ accounts, keys, plans })

  return {
    database,
    sealer: testSealer,
    accounts,
    keys,
    plans,
    registration,
    scans: makeScanStore(database),
    gate: makeAdmissionGate(database),
    async register(request: Partial<AccountRequest> = {}) {
      const registered = await registration.register({ name: 'test', plan: 'unlimited', ...request })
      return { ...registered, id: registered.account.id, digest: toKeyDigest(registered.apiKey) }
    },
    /** Moves the account back in time by so many days, as if it had been idle for them. */
    async age(accountId: string, days: number) {
      await database.pool.query(
        `update balances set period_anchor = period_anchor - $2 * interval '1 day',
           period_start = period_start - $2 * interval '1 day', period_end = period_end - $2 * interval '1 day'
         where account_id = $1`,
        [accountId, days],
      )
    },
    async ageWindows(seconds: number) {
      for (const table of ['rate_windows', 'account_windows']) {
        await database.pool.query(`update ${table} set started_at = started_at - $1 * interval '1 second'`, [seconds])
      }
    },
    async getBalance(accountId: string) {
      const { rows } = await database.pool.query<{ remaining: number; ledger: number; debits: number; scans: number }>(
        `select credit_remaining as remaining,
           (select sum(amount)::int from credit_ledger where account_id = $1)
             - (select count(*)::int from scans where account_id = $1 and ledger_id is not null) as ledger,
           (select count(*)::int from scans where account_id = $1 and ledger_id is not null) as debits,
           (select count(*)::int from scans where account_id = $1) as scans
         from balances where account_id = $1`,
        [accountId],
      )
      return rows[0]
    },
    close: database.drop,
  }
}

export type TestStores = Awaited<ReturnType<typeof openTestStores>>
