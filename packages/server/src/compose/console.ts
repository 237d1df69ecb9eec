import { fileURLToPath } from 'node:url'
import { type AccountHandlerDeps, makeAccountHandlers } from '../admin/account-handlers.ts'
import type { Handlers } from '../admin/call.ts'
import { makeJobHandlers } from '../admin/job-handlers.ts'
import { makeKeyHandlers } from '../admin/key-handlers.ts'
import { type ListHandlerDeps, makeListHandlers } from '../admin/list-handlers.ts'
import { makeOperatorAccountHandlers } from '../admin/operator-account-handlers.ts'
import { makeScanHandlers } from '../admin/scan-handlers.ts'
import { makeSessionHandlers } from '../admin/session-handlers.ts'
import { makeSystemHandlers, type SystemDeps } from '../admin/system-handlers.ts'
import { makeWebhookHandlers, type WebhookHandlerDeps } from '../admin/webhook-handlers.ts'
import type { Config } from '../config/load-config.ts'
import { makeAuditLog } from '../database/console/audit-log.ts'
import { makeMemberStore } from '../database/console/member-store.ts'
import { makeOperations } from '../database/console/operations.ts'
import { makeScanHistory } from '../database/console/scan-history.ts'
import type { Database } from '../database/open-database.ts'
import { makeInvitations } from '../domain/console/invitations.ts'
import { makeSignIn } from '../domain/console/sign-in.ts'
import { systemClock } from '../runtime/clock.ts'
import { version } from '../runtime/version.ts'
import type { Office } from './office.ts'

export const consoleDir = fileURLToPath(new URL('../../../console/dist/', import.meta.url))

/** Those who may use the console, and how they come in. */
export function makeEntrance({ pool }: Pick<Database, 'pool'>) {
  const members = makeMemberStore({ pool })
  const audit = makeAuditLog({ pool })
  const signIn = makeSignIn({ members, audit, clock: systemClock })
  const invitations = makeInvitations({ members, signIn, audit, clock: systemClock })
  return { members, audit, signIn, invitations }
}

type Deps = Pick<ListHandlerDeps, 'lists' | 'refreshLists'> &
  Pick<AccountHandlerDeps, 'members' | 'invitations' | 'audit'> &
  Pick<WebhookHandlerDeps, 'sender' | 'policy' | 'onReplayed'> & {
    signIn: ReturnType<typeof makeEntrance>['signIn']
    office: Office
    isTestMode: boolean
    onQueued(): void
    desk: Omit<SystemDeps, 'audit'>
  }

/** Everything that the admin API does. */
export function makeConsoleHandlers(config: Config, { office, isTestMode, desk, ...entrance }: Deps): Handlers {
  const { database, accounts, keys, plans, deliveries, registration } = office
  const shared = { ...entrance, accounts, keys, plans, deliveries, registration, clock: systemClock }
  return {
    ...makeSessionHandlers({ ...shared, region: config.region, version, isTestMode }),
    ...makeScanHandlers({ ...shared, history: makeScanHistory(database) }),
    ...makeKeyHandlers(shared),
    ...makeWebhookHandlers(shared),
    ...makeAccountHandlers(shared),
    ...makeOperatorAccountHandlers(shared),
    ...makeJobHandlers({ ...shared, operations: makeOperations(database) }),
    ...makeListHandlers(shared),
    ...makeSystemHandlers({ ...desk, audit: shared.audit }),
  }
}
