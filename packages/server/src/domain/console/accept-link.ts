import { v7 as newId } from 'uuid'
import type { AuditLog } from '../ports/audit-log.ts'
import type { Link, Member, MemberStore } from '../ports/member-store.ts'
import { Problem } from '../problem.ts'
import { type Authentication, type Origin, toDigest } from './authentication.ts'
import { isCommonPassword } from './common-passwords.ts'
import type { Passwords } from './credentials.ts'
import type { SignIn, SignInOutcome } from './sign-in.ts'

export type AcceptDeps = {
  members: MemberStore
  passwords: Passwords
  authentication: Authentication
  signIn: SignIn
  audit: AuditLog
}
export type Person = { name: string; email: string; password: string; code?: string | undefined }

export function makeAcceptLink({ members, passwords, authentication, signIn, audit }: AcceptDeps) {
  /**
   * Uses a link. A person who is a member already, perhaps of another account, gives their password and code. A link
   * for a new password replaces only the password: an authenticator app still asks for a code. Where passwords are not
   * accepted, members use only links for operators, which come from the server: an owner could invite themselves.
   */
  return async (
    link: Link,
    token: string,
    person: Person,
    origin: Origin,
    { acceptsPasswords = true } = {},
  ): Promise<SignInOutcome> => {
    if (link.memberId !== null) return reset(link.memberId, token, person, origin)
    if (link.email !== null && link.email.toLowerCase() !== person.email.toLowerCase()) {
      throw newEmailError(`This invitation is for ${link.email} only.`)
    }
    const existing = await members.findByEmail(person.email)
    if (existing === undefined) return join(link, token, person, origin)
    if (!acceptsPasswords && link.role !== 'operator') throw newPasswordRefused()
    return joinAgain(link, token, person, origin)
  }

  /** Creates a member. */
  async function join(link: Link, token: string, person: Person, origin: Origin): Promise<SignInOutcome> {
    requireUncommon(person)
    const id = newId()
    const passwordHash = await passwords.hash(person.password)
    const member = { id, name: person.name.trim(), email: person.email, passwordHash }
    return audit.atomically(async () => {
      const outcome = await members.acceptLink(toDigest(token), member)
      if (outcome === 'link-invalid') throw newInvalidLink()
      if (outcome === 'email-in-use') throw newEmailError('This email address is already in use.')
      return enter(await members.findMember(id), 'member.create', link, origin)
    })
  }

  /** Adds a membership or the role of an operator to a member. */
  async function joinAgain(link: Link, token: string, person: Person, origin: Origin): Promise<SignInOutcome> {
    const member = await authentication.authenticate(person, origin)
    if (member === 'code-needed') return member
    return audit.atomically(async () => {
      const outcome = await members.joinByLink(toDigest(token), member.id)
      if (outcome === 'link-invalid') throw newInvalidLink()
      return enter(member, 'member.join', link, origin)
    })
  }

  async function enter(member: Member | undefined, action: string, link: Link, origin: Origin) {
    if (member === undefined) throw newInvalidLink()
    const { role: target, accountId } = link
    const memberships = await members.listMemberships(member.id)
    const membership = memberships.find((one) => one.accountId === accountId) ?? memberships[0]
    const opened = await signIn.openSession(member, membership?.accountId ?? null, origin)
    await audit.note({ actor: member.email, action, target, accountId, address: origin.address })
    return opened
  }

  async function reset(memberId: string, token: string, { password }: Person, origin: Origin): Promise<SignInOutcome> {
    const member = await members.findMember(memberId)
    if (member === undefined) throw newInvalidLink()
    requireUncommon({ ...member, password })
    const passwordHash = await passwords.hash(password)
    return audit.atomically(async () => {
      const outcome = await members.acceptReset(toDigest(token), passwordHash)
      if (outcome === 'link-invalid') throw newInvalidLink()
      const memberships = await members.listMemberships(memberId)
      const result =
        member.totpConfirmedAt === null
          ? await signIn.openSession({ ...member, passwordHash }, memberships[0]?.accountId ?? null, origin)
          : 'code-needed'
      // The owners of each account are told about the new password: the operator who made the link could have used it.
      for (const accountId of memberships.length === 0 ? [null] : memberships.map((one) => one.accountId)) {
        const entry = { actor: member.email, action: 'password.reset', target: member.email }
        await audit.note({ ...entry, accountId, address: origin.address })
      }
      return result
    })
  }
}

/** Throws for a new password that is easy to guess. */
export function requireUncommon(
  { password, email, name }: { password: string; email: string; name: string },
  field = 'password',
) {
  if (!isCommonPassword(password, { email, name })) return
  throw new Problem({
    kind: 'validation',
    errors: { [field]: ['This password is easy to guess. Choose another, such as several unrelated words.'] },
  })
}

const newPasswordRefused = () =>
  new Problem({
    kind: 'forbidden',
    detail:
      'This service requires single sign-on: members cannot accept an invitation with a password. Ask an operator to ' +
      'give you the role with single sign-on.',
  })

const newEmailError = (message: string) => new Problem({ kind: 'validation', errors: { email: [message] } })

export const newInvalidLink = () =>
  new Problem({ kind: 'not-found', detail: 'The link was already used or has expired. Ask the sender for a new one.' })
