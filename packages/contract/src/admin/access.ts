/** Operators run the service. Owners and members belong to an account; only owners manage its members. */
export type Role = 'operator' | 'owner' | 'member'
export const roles: readonly Role[] = ['operator', 'owner', 'member']

/**
 * The callers that may use a route. `signed-in` needs a session, so the operator token does not qualify. `account` and `owner` need a
 * role in an account, which an operator can have as well.
 */
export type Access = 'anyone' | 'signed-in' | 'account' | 'owner' | 'operator'

const rolesByAccess: Record<Exclude<Access, 'anyone'>, readonly Role[]> = {
  'signed-in': roles,
  account: roles,
  owner: ['operator', 'owner'],
  operator: ['operator'],
}

export function mayUse(access: Access, who: { role: Role; holdsAccount: boolean } | undefined): boolean {
  if (access === 'anyone') return true
  if (who === undefined || !rolesByAccess[access].includes(who.role)) return false
  return who.holdsAccount || (access !== 'account' && access !== 'owner')
}

/** Every request that changes something carries this header, with the `csrf_token` of `GET /session`. */
export const csrfHeader = 'X-CSRF-Token'
