import { makeAuditLog } from '../database/console/audit-log.ts'
import { makeMemberStore } from '../database/console/member-store.ts'
import type { Database } from '../database/open-database.ts'
import { makeInvitations } from '../domain/console/invitations.ts'
import { makeSignIn } from '../domain/console/sign-in.ts'
import { systemClock } from '../runtime/clock.ts'

/** Those who may use the console, and how they come in. */
export function makeAuth({ pool }: Pick<Database, 'pool'>) {
  const members = makeMemberStore({ pool })
  const audit = makeAuditLog({ pool })
  const signIn = makeSignIn({ members, audit, clock: systemClock })
  const invitations = makeInvitations({ members, signIn, audit, clock: systemClock })
  return { members, audit, signIn, invitations }
}
