import { setTimeout as sleep } from 'node:timers/promises'
import { openMasterKey } from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import { openMissingBalances } from '../database/balances.ts'
import {
  type CopyProgress,
  endHomeContact,
  followHome,
  isPublished,
  isSatellite,
  leaveHome,
  listFollowers,
  listIncomplete,
  publishAccounts,
  readCopyProgress,
  readHomeContact,
  startHomeContact,
} from '../database/regions.ts'
import { OperatorMistake } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { openStores } from './stores.ts'

const pollMs = 200
const copyTimeoutMs = 10 * 60_000

/** Opens what operator commands do with regions, which share accounts, keys and plans. */
export async function openRegions(config: Config, log: Logger) {
  if (config.databaseUrl === undefined) {
    throw new OperatorMistake('Regions need PostgreSQL servers that can connect to each other: set ASSAY_DATABASE_URL.')
  }
  const stores = await openStores({ ...config, databaseConnections: 2 }, 'command', log)
  const { database, close } = stores
  const { pool } = database

  return {
    publish: () => publishAccounts(pool),
    /** Resolves when all accounts are copied. `onWait` is called until then. */
    async follow(homeUrl: string, onWait: (progress: CopyProgress) => void) {
      await followHome(pool, homeUrl, config.region, (homeKeyId) => {
        openMasterKey(config.masterKey, config.dataDir, homeKeyId)
      })
      await startHomeContact(pool)
      const deadline = performance.now() + copyTimeoutMs
      for (;;) {
        const progress = await readCopyProgress(pool)
        if (progress.tables.length === 0) break
        if (performance.now() > deadline) {
          throw new OperatorMistake(`${progress.tables.join(', ')} were not copied within ten minutes.`)
        }
        onWait(progress)
        await sleep(pollMs)
      }
      await openMissingBalances(pool)
    },
    async leave(homeUrl: string) {
      await leaveHome(pool, homeUrl, config.region)
      await endHomeContact(pool)
    },
    async describe() {
      const satellite = await isSatellite(pool)
      const published = await isPublished(pool)
      return {
        region: config.region,
        role: satellite ? ('satellite' as const) : published ? ('home' as const) : ('alone' as const),
        home: satellite ? await readHomeContact(pool) : undefined,
        incomplete: satellite ? await listIncomplete(pool) : [],
        followers: published ? await listFollowers(pool) : [],
      }
    },
    auth: stores.auth,
    close,
  }
}
