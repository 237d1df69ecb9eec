/** Operators run the service. Owners and members hold an account: a member may do all but manage members and the account. */
export type Role = 'operator' | 'owner' | 'member'
export const roles: readonly Role[] = ['operator', 'owner', 'member']

/** Who may use a route. `signed-in` is for people, not for the operator token. `account` and `owner` are for those who hold an account; an operator may hold one, too. */
export type Access = 'anyone' | 'signed-in' | 'account' | 'owner' | 'operator'

const admitted: Record<Exclude<Access, 'anyone'>, readonly Role[]> = {
  'signed-in': roles,
  account: roles,
  owner: ['operator', 'owner'],
  operator: ['operator'],
}

export function mayUse(access: Access, who: { role: Role; holdsAccount: boolean } | undefined): boolean {
  if (access === 'anyone') return true
  if (who === undefined || !admitted[access].includes(who.role)) return false
  return who.holdsAccount || (access !== 'account' && access !== 'owner')
}

/** The session is a cookie that scripts cannot read; a change also needs this header, with what `GET session` gave. */
export const csrfHeader = 'X-CSRF-Token'
