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
import { makeRefusalStore } from '../database/console/refusal-store.ts'
import { makeScanHistory } from '../database/console/scan-history.ts'
import type { Database } from '../database/open-database.ts'
import type { Admission } from '../domain/accounts/admission.ts'
import { makeConsoleKeys } from '../domain/console/console-keys.ts'
import type { WebhookSender } from '../domain/ports/webhook-sender.ts'
import { openLists } from '../domain/scans/allow-and-block.ts'
import type { ScanDeps } from '../http/routes/scans.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { version } from '../runtime/version.ts'
import { openRefusalCounter } from '../workers/refusal-counter.ts'
import { makeEntrance } from './entrance.ts'
import type { Office } from './office.ts'
import { type DeskDeps, makeOperatorDesk } from './operator-desk.ts'

const consoleDir = fileURLToPath(new URL('../../../console/dist/', import.meta.url))
const listsEveryMs = 3000

/** What operators allow and block, at hand for every verdict. */
export async function openListed(database: Database, log: Logger) {
  const store = makeListStore(database)
  const reportFailure = (error: unknown) => log.warn({ err: error }, 'the allow and block lists could not be read')
  return { store, ...(await openLists({ store, clock: systemClock, everyMs: listsEveryMs, reportFailure })) }
}

type Deps = Omit<DeskDeps, 'operations' | 'contents'> & {
  office: Office
  isTest: boolean
  lists: Awaited<ReturnType<typeof openListed>>
  /** What the interface does with scans; the console does the same. */
  doing: ScanDeps & { admission: Admission }
  sender: WebhookSender
  background: { onQueued(): void; onReplayed(): void }
}

/** The console and the API behind it, to be served beside the interface. */
export function openConsole(config: Config, deps: Deps) {
  const { office, isTest, doing } = deps
  const entrance = makeEntrance(office.database)
  const handlers = makeHandlers(config, deps, entrance)
  const refusals = openRefusalCounter({ store: makeRefusalStore(office.database), clock: systemClock, log: deps.log })
  const guarded = { ...entrance, adminToken: config.adminToken }
  return {
    scopes: [
      (scope: FastifyInstance) => registerConsole(scope, consoleDir),
      (scope: FastifyInstance) => registerAdmin(scope, { ...guarded, handlers }),
      (scope: FastifyInstance) =>
        registerConsoleScans(scope, { ...guarded, ...doing, consoleKeys: makeConsoleKeys({ ...office, isTest }) }),
    ],
    noteRefusal: refusals.note,
    inviteFirstOperator: entrance.invitations.inviteFirstOperator,
    close: refusals.close,
  }
}

function makeHandlers(config: Config, deps: Deps, entrance: ReturnType<typeof makeEntrance>): Handlers {
  const { office, lists, doing, sender, background } = deps
  const { database, accounts, keys, plans, deliveries, registration } = office
  const operations = makeOperations(database)
  const shared = { ...entrance, ...background, accounts, keys, plans, deliveries, registration, clock: systemClock }
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
      ...makeOperatorDesk(config, { ...deps, operations, contents: doing.contents }),
      audit: entrance.audit,
    }),
  }
}
