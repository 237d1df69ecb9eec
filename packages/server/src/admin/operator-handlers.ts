import type { Operator } from '@assay/contract/admin'
import type { Invitations } from '../domain/console/invitations.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { Member, MemberStore } from '../domain/ports/member-store.ts'
import { Problem } from '../domain/problem.ts'
import { toWelcomeUrl } from './account-handlers.ts'
import { type Call, getId, type Handlers, requireFound, requireRemoved } from './call.ts'

export type OperatorHandlerDeps = {
  accounts: AccountStore
  members: MemberStore
  invitations: Invitations
}

/** Handlers of operators for the people in the console: owners of accounts, and other operators. */
export function makeOperatorHandlers({ accounts, members, invitations }: OperatorHandlerDeps) {
  return {
    async inviteOwner(call) {
      const accountId = getId(call, 'account')
      requireFound(await accounts.findAccount(accountId), 'account')
      const { email } = call.body
      const { id, token, expiresAt } = await invitations.invite({ role: 'owner', accountId, email })
      await call.audit('account.invite-owner', email, { accountId })
      return { id, url: toWelcomeUrl(call, token), expires_at: expiresAt.toISOString() }
    },

    listOperators: async () => (await members.listOperators()).map(toOperator),

    async suspendOperator(call) {
      const { id, email } = await getOther(call)
      const { suspended } = call.body
      requireRemoved(await members.suspendOperator(id, suspended), 'operator')
      await call.audit(suspended ? 'operator.suspend' : 'operator.resume', email)
    },

    async removeOperator(call) {
      const { id, email } = await getOther(call)
      requireRemoved(await members.removeOperator(id), 'operator')
      await call.audit('operator.remove', email)
    },
  } satisfies Partial<Handlers>

  /** Returns the operator of the path. Operators cannot lock themselves out. */
  async function getOther(call: Call<'suspendOperator' | 'removeOperator'>): Promise<Member> {
    const id = getId(call, 'operator')
    if (id === call.who.memberId) {
      throw new Problem({ kind: 'conflict', detail: 'You cannot do this to yourself. Ask another operator.' })
    }
    return requireFound(
      (await members.listOperators()).find((operator) => operator.id === id),
      'operator',
    )
  }
}

const toOperator = (operator: Member): Operator => ({
  id: operator.id,
  name: operator.name,
  email: operator.email,
  has_totp: operator.totpConfirmedAt !== null,
  created_at: operator.createdAt.toISOString(),
  last_seen_at: operator.lastSeenAt?.toISOString() ?? null,
  suspended_at: operator.suspendedAt?.toISOString() ?? null,
})
