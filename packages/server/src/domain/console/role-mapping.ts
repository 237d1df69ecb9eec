import type { MappedRoles } from '../ports/sso-store.ts'

/** Gives a role to people whose role claim has this value; `*` to everybody. */
export type RoleRule = { value: string } & (
  | { role: 'operator'; accountId: null }
  | { role: 'owner' | 'member'; accountId: string }
)

/** The roles that the claims of a person give. An owner of an account is not also its member. */
export function toMappedRoles(claims: Record<string, unknown>, claim: string, rules: RoleRule[]): MappedRoles {
  const values = findValues(claims, claim)
  const matching = rules.filter(({ value }) => value === '*' || values.includes(value))
  const roles = new Map<string, 'owner' | 'member'>()
  for (const { role, accountId } of matching) {
    if (role !== 'operator' && roles.get(accountId) !== 'owner') roles.set(accountId, role)
  }
  return {
    isOperator: matching.some(({ role }) => role === 'operator'),
    accounts: [...roles].map(([accountId, role]) => ({ accountId, role })),
  }
}

/** The texts of a claim, which is one text or a list. The name may be a path, as some issuers nest their roles. */
function findValues(claims: Record<string, unknown>, claim: string): string[] {
  const found = claims[claim] ?? claim.split('.').reduce<unknown>(findMember, claims)
  return (Array.isArray(found) ? found : [found]).filter((value) => typeof value === 'string')
}

const findMember = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
