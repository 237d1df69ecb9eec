import type { Plan } from '../domain/accounts/account.ts'
import type { PlanStore } from '../domain/ports/plan-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import type { Database } from './open-database.ts'

const foreignKeyViolation = '23503'

export function makePlanStore(deps: Pick<Database, 'kysely'>): PlanStore {
  const { kysely } = deps
  const selectPlans = () =>
    kysely.selectFrom('plans').select(['name', 'credits_per_period', 'rate_requests', 'rate_period_seconds'])

  return {
    async savePlan(plan) {
      const values = {
        credits_per_period: plan.creditsPerPeriod,
        rate_requests: plan.rate.requests,
        rate_period_seconds: plan.rate.periodSeconds,
      }
      await kysely
        .insertInto('plans')
        .values({ name: plan.name, ...values })
        .onConflict((conflict) => conflict.column('name').doUpdateSet(values))
        .execute()
    },

    async findPlan(name) {
      const row = await selectPlans().where('name', '=', name).executeTakeFirst()
      return row === undefined ? undefined : toPlan(row)
    },

    async listPlans() {
      return (await selectPlans().orderBy('credits_per_period').orderBy('name').execute()).map(toPlan)
    },

    async deletePlan(name) {
      try {
        const { numDeletedRows } = await kysely.deleteFrom('plans').where('name', '=', name).executeTakeFirstOrThrow()
        return numDeletedRows > 0n
      } catch (error) {
        if ((error as { code?: string }).code !== foreignKeyViolation) throw error
        throw new OperatorMistake(`Accounts are on the plan ${name}. Move them first: accounts update ID --plan OTHER.`)
      }
    },
  }
}

type PlanRow = { name: string; credits_per_period: number; rate_requests: number; rate_period_seconds: number }

const toPlan = (row: PlanRow): Plan => ({
  name: row.name,
  creditsPerPeriod: row.credits_per_period,
  rate: { requests: row.rate_requests, periodSeconds: row.rate_period_seconds },
})
