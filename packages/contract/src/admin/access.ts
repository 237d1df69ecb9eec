/** Operators run the service. Owners and members belong to an account; only owners manage its members. */
export type Role = 'operator' | AccountRole
export const roles: readonly Role[] = ['operator', 'owner', 'member']
/** What a person is in one account. An operator can belong to accounts as well. */
export type AccountRole = 'owner' | 'member'

/**
 * The callers that may use a route. `signed-in` needs a session, so the operator token does not qualify. `account` and
 * `owner` need a role in the account that the session works in.
 */
export type Access = 'anyone' | 'signed-in' | 'account' | 'owner' | 'operator'

type Caller = { isOperator: boolean; accountRole: AccountRole | null }

export function mayUse(access: Access, who: Caller | undefined): boolean {
  if (access === 'anyone') return true
  if (who === undefined) return false
  switch (access) {
    case 'signed-in':
      return true
    case 'account':
      return who.accountRole !== null
    case 'owner':
      return who.accountRole === 'owner'
    case 'operator':
      return who.isOperator
  }
}

/** Every request that changes something carries this header, with the `csrf_token` of `GET /session`. */
export const csrfHeader = 'X-CSRF-Token'
