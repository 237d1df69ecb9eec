import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/load-config.ts'
import { openMissingBalances } from '../database/balances.ts'
import {
  followHome,
  isPublished,
  isSatellite,
  leaveHome,
  listFollowers,
  listIncomplete,
  publishAccounts,
} from '../database/regions.ts'
import { OperatorMistake } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { openStores } from './stores.ts'

const lookAgainMs = 200
const patienceMs = 10 * 60_000

/** The operator's hand on what regions share: accounts, keys and plans, and nothing else. */
export async function openRegions(config: Config, log: Logger) {
  if (config.databaseUrl === undefined) {
    throw new OperatorMistake(
      'Regions share accounts between two PostgreSQL servers that reach each other: set ASSAY_DATABASE_URL.',
    )
  }
  const { database, close } = await openStores({ ...config, databaseConnections: 2 }, 'guest', log)
  const { pool } = database

  return {
    publish: () => publishAccounts(pool),
    /** Until all accounts are there. `onWait` is told which tables are still on their way. */
    async follow(homeUrl: string, onWait: (tables: string[]) => void) {
      await followHome(pool, homeUrl, config.region)
      const deadline = Date.now() + patienceMs
      for (let tables = await listIncomplete(pool); tables.length > 0; tables = await listIncomplete(pool)) {
        if (Date.now() > deadline) throw new OperatorMistake(`${tables.join(', ')} did not come within ten minutes.`)
        onWait(tables)
        await sleep(lookAgainMs)
      }
      await openMissingBalances(pool)
    },
    leave: (homeUrl: string) => leaveHome(pool, homeUrl, config.region),
    async look() {
      const satellite = await isSatellite(pool)
      const published = await isPublished(pool)
      return {
        region: config.region,
        role: satellite ? ('satellite' as const) : published ? ('home' as const) : ('alone' as const),
        incomplete: satellite ? await listIncomplete(pool) : [],
        followers: published ? await listFollowers(pool) : [],
      }
    },
    close,
  }
}
