import type { Plan } from '../accounts/account.ts'

export type PlanStore = {
  savePlan(plan: Plan): Promise<void>
  findPlan(name: string): Promise<Plan | undefined>
  listPlans(): Promise<Plan[]>
  /** Returns false when there is no such plan; throws an OperatorMistake while accounts use it. */
  deletePlan(name: string): Promise<boolean>
}
