import type { Role } from '@assay/contract/admin'
import { v7 as newId } from 'uuid'
import type { AuditLog } from '../ports/audit-log.ts'
import type { Link, MemberStore } from '../ports/member-store.ts'
import { type AcceptDeps, makeAcceptLink, newInvalidLink, type Person } from './accept-link.ts'
import { type Origin, toDigest } from './authentication.ts'
import { newToken, type SignInOutcome } from './sign-in.ts'

type Deps = AcceptDeps & { members: MemberStore; audit: AuditLog }
type Invitee = { role: Role; accountId: string | null; email?: string | undefined }

const dayMs = 86_400_000
const lifetimeMs = 7 * dayMs

/** One-time links by which people join or set a new password. Only a digest of the token is stored. */
export function makeInvitations(deps: Deps) {
  const { members, audit } = deps
  const acceptLink = makeAcceptLink(deps)

  return {
    /** A link for the first operator, who also gets the first account. Undefined when there is an operator already. */
    async inviteFirstOperator(): Promise<{ token: string } | undefined> {
      const firstAccount = await members.findFirstOperatorAccount()
      return firstAccount && addLink('first-operator', { role: 'operator', ...firstAccount }, null)
    },
    needsFirstOperator: async (): Promise<boolean> => (await members.findFirstOperatorAccount()) !== undefined,
    invite: (invitee: Invitee) => addLink('invitation', invitee, null),
    /** A link for an operator. While there is none, the operator who accepts it also gets the first account. */
    async inviteOperator() {
      const { accountId } = (await members.findFirstOperatorAccount()) ?? { accountId: null }
      return addLink('invitation', { role: 'operator', accountId }, null)
    },
    /** A link for a member who forgot the password. `removesTotp` also removes a lost authenticator app. */
    async resetPassword(
      email: string,
      { removesTotp, actor }: { removesTotp: boolean; actor: string },
    ): Promise<{ token: string; expiresAt: Date } | undefined> {
      const member = await members.findByEmail(email)
      if (member === undefined) return undefined
      if (removesTotp) await members.removeTotp(member.id)
      const role = member.isOperator ? 'operator' : 'member'
      const link = await addLink('new-password', { role, accountId: null, email: member.email }, member.id)
      if (removesTotp) await audit.note({ actor, action: 'totp.remove', target: member.email })
      return link
    },
    getLink,
    /** Whether the address of an invitation has a password already, which then must be given instead of a new one. */
    isForMember: async ({ email, purpose }: Link): Promise<boolean> =>
      purpose !== 'new-password' && email !== null && (await members.findByEmail(email)) !== undefined,

    /** Uses a link, and opens a session unless a code is missing. */
    accept: async (
      token: string,
      person: Person,
      origin: Origin,
      options?: { acceptsPasswords: boolean },
    ): Promise<SignInOutcome> => acceptLink(await getLink(token), token, person, origin, options),
  }

  async function addLink(purpose: Link['purpose'], { role, accountId, email }: Invitee, memberId: string | null) {
    const token = newToken()
    const id = newId()
    const expiresAt = await members.addLink({
      id,
      digest: toDigest(token),
      purpose,
      role,
      accountId,
      memberId,
      email: email ?? null,
      lifetimeMs,
    })
    return { id, token, expiresAt }
  }

  async function getLink(token: string): Promise<Link> {
    const link = await members.findLink(toDigest(token))
    if (link === undefined) throw newInvalidLink()
    return link
  }
}

export type Invitations = ReturnType<typeof makeInvitations>
