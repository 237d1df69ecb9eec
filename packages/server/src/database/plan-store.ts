import type { Pool } from 'pg'
import type { Plan, Rate } from '../domain/accounts/account.ts'
import type { PlanStore } from '../domain/ports/plan-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { isForeignKeyViolation } from './database-error.ts'
import { changeRows, findRow, listRows } from './query.ts'

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
export type AccountRateRow = { accountRequests: number | null; accountSeconds: number | null }

const toPlan = ({ requests, periodSeconds, accountRequests, accountSeconds, ...plan }: PlanRow): Plan => ({
  ...plan,
  rate: { requests, periodSeconds },
  accountRate: toAccountRate({ accountRequests, accountSeconds }),
})

export const toAccountRate = ({ accountRequests, accountSeconds }: AccountRateRow): Rate | null =>
  accountRequests === null || accountSeconds === null
    ? null
    : { requests: accountRequests, periodSeconds: accountSeconds }
