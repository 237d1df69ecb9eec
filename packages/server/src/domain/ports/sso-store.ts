import type { AccountRole } from '@assay/contract/admin'
import type { Member, Removal } from './member-store.ts'

/** The roles that the role mapping gives to a person. */
export type MappedRoles = { isOperator: boolean; accounts: { accountId: string; role: AccountRole }[] }

type NewMember = Pick<Member, 'id' | 'email' | 'name' | 'passwordHash'>
type Key = { issuer: string; subject: string }

/** Single sign-ons that were begun, and the members that belong to persons at an issuer. */
export type SsoStore = {
  addAttempt(attempt: { digest: string; sessionId: string | null; lifetimeMs: number }): Promise<void>
  /** Removes the attempt, so that it can be finished once. Undefined when it is unknown, used or too old. */
  takeAttempt(digest: string): Promise<{ sessionId: string | null } | undefined>
  findMember(key: Key): Promise<Member | undefined>
  /** Returns false when the email address is in use. */
  createMember(member: NewMember): Promise<boolean>
  /** Returns false when the person at the issuer belongs to another member, or the member to another person. */
  link(key: Key, memberId: string): Promise<boolean>
  /** Removes the link and the roles that came with it. */
  unlink(memberId: string): Promise<Removal>
  /**
   * Gives the mapped roles, and takes away those that an earlier mapping gave. Roles that were given in Assay stay.
   * Returns the changes, such as `+operator`.
   */
  setRoles(memberId: string, roles: MappedRoles): Promise<string[]>
  describe(memberId: string, sessionId: string): Promise<{ isLinked: boolean; isSsoSession: boolean }>
}
