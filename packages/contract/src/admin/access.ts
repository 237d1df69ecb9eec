/** Operators run the service. Owners and members hold an account: a member may do all but manage members and the account. */
export type Role = 'operator' | 'owner' | 'member'
export const roles: readonly Role[] = ['operator', 'owner', 'member']

/** Who may use a route. `account` is everybody who holds the account that the session is for. */
export type Access = 'anyone' | 'signed-in' | 'account' | 'owner' | 'operator'

const admitted: Record<Exclude<Access, 'anyone'>, readonly Role[]> = {
  'signed-in': roles,
  account: ['owner', 'member'],
  owner: ['owner'],
  operator: ['operator'],
}

export const mayUse = (access: Access, role: Role | undefined): boolean =>
  access === 'anyone' || (role !== undefined && admitted[access].includes(role))

/** The session is a cookie that scripts cannot read; a change also needs this header, with what `GET session` gave. */
export const csrfHeader = 'X-CSRF-Token'
