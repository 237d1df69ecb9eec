import type { Role } from '@assay/contract/admin'
import { v7 as newId } from 'uuid'
import type { AuditLog } from '../ports/audit-log.ts'
import type { Clock } from '../ports/clock.ts'
import type { Link, MemberStore } from '../ports/member-store.ts'
import { Problem } from '../problem.ts'
import { hashPassword } from './credentials.ts'
import { newToken, type Origin, type SignIn, type SignInOutcome, toDigest } from './sign-in.ts'

type Deps = { members: MemberStore; signIn: SignIn; audit: AuditLog; clock: Clock }
type Invitee = { role: Role; accountId: string | null; email?: string | undefined }

const dayMs = 86_400_000
const lifetimeMs = 7 * dayMs

/** One-time links by which people join or set a new password. Only a digest of the token is stored. */
export function makeInvitations({ members, signIn, audit, clock }: Deps) {
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
      { removesTotp }: { removesTotp: boolean },
    ): Promise<{ token: string; expiresAt: Date } | undefined> {
      const member = await members.findByEmail(email)
      if (member === undefined) return undefined
      if (removesTotp) {
        await members.setTotp(member.id, null, null)
        await audit.note({
          actor: 'command line',
          action: 'totp.remove',
          target: member.email,
          accountId: member.accountId,
        })
      }
      return addLink('new-password', { ...member, email: member.email }, member.id)
    },
    getLink,

    /**
     * Uses a link. A member with an authenticator app must still sign in with a code: a link replaces only the
     * password.
     */
    async accept(
      token: string,
      person: { name: string; email: string; password: string },
      origin: Origin,
    ): Promise<SignInOutcome> {
      const link = await getLink(token)
      const passwordHash = await hashPassword(person.password)
      const memberId = link.memberId ?? newId()
      const outcome =
        link.memberId === null
          ? await members.acceptLink(toDigest(token), clock.now(), {
              id: memberId,
              accountId: link.accountId,
              role: link.role,
              passwordHash,
              name: person.name.trim(),
              email: person.email,
            })
          : await members.acceptReset(toDigest(token), clock.now(), passwordHash)
      if (outcome === 'link-invalid') throw newInvalidLink()
      if (outcome === 'email-in-use') {
        throw new Problem({ kind: 'validation', errors: { email: ['This email address is already in use.'] } })
      }
      if (link.memberId !== null) await members.closeSessions(memberId)
      const action = link.memberId === null ? 'member.create' : 'password.reset'
      const actor = link.memberId === null ? person.email : (link.email ?? '')
      await audit.note({ actor, action, target: link.role, accountId: link.accountId, ...origin })
      const member = await members.findMember(memberId)
      if (member === undefined) throw newInvalidLink()
      return member.totpConfirmedAt === null ? { token: await signIn.openSession(member, origin) } : 'code-needed'
    },
  }

  async function addLink(purpose: Link['purpose'], { role, accountId, email }: Invitee, memberId: string | null) {
    const token = newToken()
    const createdAt = clock.now()
    const expiresAt = new Date(createdAt.getTime() + lifetimeMs)
    const id = newId()
    await members.addLink({
      id,
      digest: toDigest(token),
      purpose,
      role,
      accountId,
      memberId,
      email: email ?? null,
      createdAt,
      expiresAt,
    })
    return { id, token, expiresAt }
  }

  async function getLink(token: string): Promise<Link> {
    const link = await members.findLink(toDigest(token), clock.now())
    if (link === undefined) throw newInvalidLink()
    return link
  }
}

const newInvalidLink = () =>
  new Problem({ kind: 'not-found', detail: 'The link was already used or has expired. Ask the sender for a new one.' })

export type Invitations = ReturnType<typeof makeInvitations>
