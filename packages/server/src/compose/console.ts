import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { makeAccountHandlers, makeKeyHandlers } from '../admin/account-handlers.ts'
import { makeAlertHandlers } from '../admin/alert-handlers.ts'
import type { Handlers } from '../admin/call.ts'
import { registerConsole } from '../admin/console-files.ts'
import { makeDownloadHandlers } from '../admin/download-handlers.ts'
import { makeListHandlers } from '../admin/list-handlers.ts'
import { makeJobHandlers, makeOperatorAccountHandlers, makeOperatorHandlers } from '../admin/operator-handlers.ts'
import { registerAdmin, registerConsoleScans } from '../admin/register-admin.ts'
import { makeActivityHandlers, makeScanHandlers } from '../admin/scan-handlers.ts'
import { makeSessionHandlers, makeSsoHandlers, makeTotpHandlers } from '../admin/session-handlers.ts'
import { makeKnowledgeHandlers, makeSourceHandlers, makeSystemHandlers } from '../admin/system-handlers.ts'
import { makeWebhookHandlers } from '../admin/webhook-handlers.ts'
import type { Config } from '../config/load-config.ts'
import { makeOperations } from '../database/operations.ts'
import { afterCommit } from '../database/query.ts'
import { makeRejectedRequestStore, makeScanHistory } from '../database/scan-store.ts'
import type { Admission } from '../domain/accounts/admission.ts'
import { makeConsoleKeys } from '../domain/console/authentication.ts'
import type { Receipts } from '../domain/receipts.ts'
import type { ScanDeps } from '../http/scans.ts'
import { version } from '../runtime/process.ts'
import { openRejectedRequests } from '../workers/activity-recorder.ts'
import type { BackgroundParts } from './background.ts'
import { openSingleSignOn } from './single-sign-on.ts'
import { makeSystemStatus, type SystemStatusDeps } from './system-status.ts'

const consoleDir = fileURLToPath(new URL('../../../console/dist/', import.meta.url))

type Deps = Omit<SystemStatusDeps, 'operations' | 'contents'> & {
  background: BackgroundParts
  /** The same as behind `/v1`: a scan in the console is admitted, charged and recorded like any other. */
  useCases: ScanDeps & { admission: Admission; receipts: Receipts }
  isTest: boolean
}

/** Opens the console and the admin API behind it; the HTTP server registers their routes. */
export function openConsole(config: Config, deps: Deps) {
  const { storage, useCases, isTest, log } = deps
  const { database, auth } = storage
  const handlers = makeHandlers(config, deps)
  const { isOutage } = database.watch
  const rejected = openRejectedRequests({ store: makeRejectedRequestStore(database), isOutage, log })
  const guard = { ...auth, adminToken: config.adminToken }
  const consoleKeys = makeConsoleKeys({ ...storage, isTest })
  return {
    scopes: [
      (scope: FastifyInstance) => registerConsole(scope, consoleDir),
      (scope: FastifyInstance) => registerAdmin(scope, { ...guard, handlers }),
      (scope: FastifyInstance) => registerConsoleScans(scope, { ...guard, ...useCases, consoleKeys }),
    ],
    countRejectedRequest: rejected.count,
    /** Without a token when a key was configured: then `operators invite` prints the link. */
    async welcomeFirstOperator(): Promise<{ token: string | undefined } | undefined> {
      if (config.bootstrapKey === undefined) return auth.invitations.inviteFirstOperator()
      return (await auth.invitations.needsFirstOperator()) ? { token: undefined } : undefined
    },
    close: rejected.close,
  }
}

function makeHandlers(config: Config, deps: Deps): Handlers {
  const { storage, scanning, background, useCases } = deps
  const { database, auth } = storage
  const operations = makeOperations(database)
  const sso = openSingleSignOn(config, { stores: storage, log: deps.log })
  const status = makeSystemStatus(config, { ...deps, operations, contents: useCases.contents })
  const shared = {
    ...auth,
    accounts: storage.accounts,
    keys: storage.keys,
    plans: storage.plans,
    deliveries: storage.deliveries,
    registration: storage.registration,
    onQueued: () => afterCommit(background.onQueued),
    onReplayed: () => afterCommit(background.onReplayed),
    clock: database.clock,
  }
  return {
    ...makeSessionHandlers({ ...shared, region: config.region, version, isTestMode: deps.isTest, sso }),
    ...makeSsoHandlers({ ...shared, sso }),
    ...makeTotpHandlers(shared),
    ...makeScanHandlers({ ...shared, history: makeScanHistory(database), receipts: useCases.receipts }),
    ...makeActivityHandlers({ activity: storage.activity, record: background.recordActivity }),
    ...makeAlertHandlers({
      ...shared,
      alerts: storage.alerts,
      send: background.sendAlert,
      hasEmail: config.smtpUrl !== undefined,
      policy: useCases.policy,
    }),
    ...makeDownloadHandlers({ ...shared, credentials: storage.downloadCredentials, policy: useCases.policy }),
    ...makeKeyHandlers(shared),
    ...makeWebhookHandlers({ ...shared, sender: scanning.outbound.sender, policy: useCases.policy }),
    ...makeAccountHandlers(shared),
    ...makeOperatorAccountHandlers(shared),
    ...makeOperatorHandlers(shared),
    ...makeJobHandlers({ ...shared, operations }),
    ...makeListHandlers({ ...shared, lists: scanning.lists.store, refreshLists: scanning.lists.refresh }),
    ...makeKnowledgeHandlers({ ...shared, ...storage, policy: useCases.policy }),
    ...makeSystemHandlers({ ...status, audit: auth.audit }),
    ...makeSourceHandlers({ sources: storage.sources }),
  }
}
