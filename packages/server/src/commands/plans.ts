import type { Command } from 'commander'
import { type Plan, type Rate, toRateText } from '../domain/accounts/account.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { readCredits, readKeyLimit, readName, readRate } from './options.ts'
import { addCommand, changeStores, newCommand, print, toTable, withStores } from './terminal.ts'

type SaveOptions = { credits: number; rate: Rate; accountRate?: Rate; maxKeys?: number }

export function makePlansCommand(): Command {
  const plans = newCommand('plans', 'list, save and delete plans')

  addCommand(plans, 'list', 'list all plans').action(async (_options: unknown, command: Command) => {
    const all = await withStores((stores) => stores.plans.listPlans())
    const rows = all.map(({ name, creditsPerPeriod, rate, accountRate, maxKeys }) => [
      name,
      creditsPerPeriod,
      toRateText(rate),
      accountRate && toRateText(accountRate),
      maxKeys,
    ])
    const columns = ['name', 'credits per period', 'rate per key', 'rate of the account', 'keys']
    print(command, all.map(toJson), toTable(columns, rows))
  })

  addCommand(
    plans,
    'save',
    'create or change a plan; rates take effect at once, credits with the next period of each account',
  )
    .argument('<name>', 'name of the plan', readName)
    .requiredOption('--credits <n>', 'credits per period', readCredits)
    .requiredOption('--rate <n/period>', 'rate limit of each key, such as 600/1m', readRate)
    .option('--account-rate <n/period>', 'rate limit of all keys of an account together; none by default', readRate)
    .option('--max-keys <n>', 'number of active keys of an account; any by default', readKeyLimit)
    .action(async (name: string, options: SaveOptions, command: Command) => {
      const { credits, rate, accountRate = null, maxKeys = null } = options
      const plan = { name, creditsPerPeriod: credits, rate, accountRate, maxKeys }
      await changeStores(async (stores, audit) => {
        await stores.plans.savePlan(plan)
        await audit('plan.save', name, { detail: JSON.stringify(toJson(plan)) })
      })
      print(command, toJson(plan), `Plan ${name}: ${credits} credits per period, ${toRateText(rate)}.`)
    })

  addCommand(plans, 'delete', 'delete a plan that no account uses')
    .argument('<name>', 'name of the plan', readName)
    .action(async (name: string, _options: unknown, command: Command) => {
      const deleted = await changeStores(async (stores, audit) => {
        const isDeleted = await stores.plans.deletePlan(name)
        if (isDeleted) await audit('plan.delete', name)
        return isDeleted
      })
      if (!deleted) throw new OperatorMistake(`There is no plan ${name}.`)
      print(command, { name, deleted }, `Plan ${name} is deleted.`)
    })
  return plans
}

const toJson = (plan: Plan) => ({
  name: plan.name,
  credits_per_period: plan.creditsPerPeriod,
  rate: toRateText(plan.rate),
  account_rate: plan.accountRate && toRateText(plan.accountRate),
  max_keys: plan.maxKeys,
})
