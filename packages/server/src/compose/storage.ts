import type { Config } from '../config/load-config.ts'
import { makeAdmissionGate, makeIdempotencyStore } from '../database/admission-gate.ts'
import { makeBalanceOpener } from '../database/balances.ts'
import { isSatellite } from '../database/regions.ts'
import { makeRecentCallers } from '../domain/accounts/admission.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Closers } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { openContentStorage } from './content-storage.ts'
import { observeDatabase } from './monitoring.ts'
import type { Stores } from './stores.ts'

type Deps = { stores: Stores; metrics: Metrics; log: Logger; closers: Closers }

/** Opens everything that holds state: the stores on the database, the admission gate and the content. */
export async function openStorage(config: Config, { stores, metrics, log, closers }: Deps) {
  const { database } = stores
  observeDatabase(metrics, database)
  // A worker does not know ASSAY_BOOTSTRAP_KEY, so only an API node may create the first account.
  const firstAccount = config.roles.api ? await registerFirstAccount(config, stores) : undefined
  const content = await openContentStorage(config, { metrics, log, closers })
  const openBalances = (await isSatellite(database.pool)) ? makeBalanceOpener(database.pool) : undefined
  const recentCallers = makeRecentCallers({ clock: systemClock })
  const gate = makeAdmissionGate({
    pool: database.pool,
    observeBatch: metrics.observeBatch,
    openBalances,
    isAway: database.watch.isAway,
    onOutage: database.watch.suspect,
  })
  return {
    ...stores,
    ...content,
    idempotency: makeIdempotencyStore(database),
    gate: recentCallers.watch(gate),
    recentCallers,
    openBalances,
    firstAccount,
  }
}

export type StorageParts = Awaited<ReturnType<typeof openStorage>>

const registerFirstAccount = (config: Config, { registration }: Stores) =>
  registration.registerFirst({
    name: 'first account',
    plan: 'unlimited',
    ...(config.bootstrapKey === undefined ? {} : { apiKey: config.bootstrapKey }),
    ...(config.bootstrapWebhookSecret === undefined ? {} : { webhookSecret: config.bootstrapWebhookSecret }),
  })
