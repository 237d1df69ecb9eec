import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { makeAccountHandlers } from '../admin/account-handlers.ts'
import type { Handlers } from '../admin/call.ts'
import { registerConsole } from '../admin/console-files.ts'
import { makeJobHandlers } from '../admin/job-handlers.ts'
import { makeKeyHandlers } from '../admin/key-handlers.ts'
import { makeListHandlers } from '../admin/list-handlers.ts'
import { makeOperatorAccountHandlers } from '../admin/operator-account-handlers.ts'
import { registerAdmin } from '../admin/register-admin.ts'
import { registerConsoleScans } from '../admin/register-console-scans.ts'
import { makeScanHandlers } from '../admin/scan-handlers.ts'
import { makeSessionHandlers } from '../admin/session-handlers.ts'
import { makeSystemHandlers } from '../admin/system-handlers.ts'
import { makeWebhookHandlers } from '../admin/webhook-handlers.ts'
import type { Config } from '../config/load-config.ts'
import { makeListStore } from '../database/console/list-store.ts'
import { makeOperations } from '../database/console/operations.ts'
import { makeRejectedRequestStore } from '../database/console/rejected-request-store.ts'
import { makeScanHistory } from '../database/console/scan-history.ts'
import type { Database } from '../database/open-database.ts'
import type { Admission } from '../domain/accounts/admission.ts'
import { makeConsoleKeys } from '../domain/console/console-keys.ts'
import type { WebhookSender } from '../domain/ports/webhook-sender.ts'
import { openLists } from '../domain/scans/verdict.ts'
import type { ScanDeps } from '../http/scans.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { version } from '../runtime/version.ts'
import { openRejectedRequests } from '../workers/rejected-requests.ts'
import { makeAuth } from './auth.ts'
import type { Stores } from './stores.ts'
import { makeSystemStatus, type SystemStatusDeps } from './system-status.ts'

const consoleDir = fileURLToPath(new URL('../../../console/dist/', import.meta.url))
const listsEveryMs = 3000

/** What operators allow and block, at hand for every verdict. */
export async function openListed(database: Database, log: Logger) {
  const store = makeListStore(database)
  const reportFailure = (error: unknown) => log.warn({ err: error }, 'the allow and block lists could not be read')
  return { store, ...(await openLists({ store, clock: systemClock, everyMs: listsEveryMs, reportFailure })) }
}

type Deps = Omit<SystemStatusDeps, 'operations' | 'contents'> & {
  stores: Stores
  isTest: boolean
  lists: Awaited<ReturnType<typeof openListed>>
  /** What the interface does with scans; the console does the same. */
  doing: ScanDeps & { admission: Admission }
  sender: WebhookSender
  background: { onQueued(): void; onReplayed(): void }
}

/** The console and the API behind it, to be served beside the interface. */
export function openConsole(config: Config, deps: Deps) {
  const { stores, isTest, doing } = deps
  const auth = makeAuth(stores.database)
  const handlers = makeHandlers(config, deps, auth)
  const refusals = openRejectedRequests({
    store: makeRejectedRequestStore(stores.database),
    clock: systemClock,
    log: deps.log,
  })
  const guarded = { ...auth, adminToken: config.adminToken }
  return {
    scopes: [
      (scope: FastifyInstance) => registerConsole(scope, consoleDir),
      (scope: FastifyInstance) => registerAdmin(scope, { ...guarded, handlers }),
      (scope: FastifyInstance) =>
        registerConsoleScans(scope, { ...guarded, ...doing, consoleKeys: makeConsoleKeys({ ...stores, isTest }) }),
    ],
    countRejectedRequest: refusals.note,
    inviteFirstOperator: auth.invitations.inviteFirstOperator,
    close: refusals.close,
  }
}

function makeHandlers(config: Config, deps: Deps, auth: ReturnType<typeof makeAuth>): Handlers {
  const { stores, lists, doing, sender, background } = deps
  const { database, accounts, keys, plans, deliveries, registration } = stores
  const operations = makeOperations(database)
  const shared = { ...auth, ...background, accounts, keys, plans, deliveries, registration, clock: systemClock }
  return {
    ...makeSessionHandlers({ ...shared, region: config.region, version, isTestMode: deps.isTest }),
    ...makeScanHandlers({ ...shared, history: makeScanHistory(database) }),
    ...makeKeyHandlers(shared),
    ...makeWebhookHandlers({ ...shared, sender, policy: doing.policy }),
    ...makeAccountHandlers(shared),
    ...makeOperatorAccountHandlers(shared),
    ...makeJobHandlers({ ...shared, operations }),
    ...makeListHandlers({ ...shared, lists: lists.store, refreshLists: lists.refresh }),
    ...makeSystemHandlers({
      ...makeSystemStatus(config, { ...deps, operations, contents: doing.contents }),
      audit: auth.audit,
    }),
  }
}
