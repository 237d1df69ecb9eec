import type { Parsed } from '../command-line/parse.ts'
import { getConfig, openClient } from '../config.ts'
import { toCount } from '../report/numbers.ts'
import { print } from '../report/output.ts'
import { sanitize, sanitizeJson } from '../report/sanitize.ts'

export async function me(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  const config = getConfig(env)
  const account = await openClient(config).account()
  if (parsed.has('json')) return await print(`${sanitizeJson(account)}\n`)
  const { plan, credit_remaining, credit_limit, period_start_date, period_end_date } = account
  const rows = [
    ['Service', config.url],
    ['Plan', plan],
    ['Credits', `${toCount(credit_remaining)} of ${toCount(credit_limit)}`],
    ['Period', `${period_start_date} to ${period_end_date}`],
  ]
  return await print(rows.map(([name = '', value = '']) => `${name.padEnd(8)} ${sanitize(value)}\n`).join(''))
}
