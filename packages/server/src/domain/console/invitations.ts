import type { Role } from '@assay/contract/admin'
import { v7 as newId } from 'uuid'
import type { Link, Member, MemberStore } from '../ports/member-store.ts'
import type { AuditLog } from '../ports/operations.ts'
import { Problem } from '../problem.ts'
import { type Authentication, type Origin, type Passwords, toDigest } from './authentication.ts'
import { newToken, type SignIn, type SignInOutcome } from './sign-in.ts'

type Deps = {
  members: MemberStore
  passwords: Passwords
  authentication: Authentication
  signIn: SignIn
  audit: AuditLog
}
type Invitee = { role: Role; accountId: string | null; email?: string | undefined }

const linkLifetimeMs = 7 * 86_400_000

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
      lifetimeMs: linkLifetimeMs,
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

export type Person = { name: string; email: string; password: string; code?: string | undefined }

function makeAcceptLink({ members, passwords, authentication, signIn, audit }: Deps) {
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

const newInvalidLink = () =>
  new Problem({ kind: 'not-found', detail: 'The link was already used or has expired. Ask the sender for a new one.' })

/**
 * True for passwords that guessers try first: few different characters, sequences of the keyboard, common words with
 * digits and signs, and the person's own name or address.
 */
export function isCommonPassword(password: string, person: { email: string; name?: string }): boolean {
  const plain = password.toLowerCase()
  if (new Set(plain).size < 5) return true
  if (isRepeated(plain)) return true
  const own = [person.email, person.email.split('@')[0] ?? '', person.name ?? ''].flatMap((text) => {
    const lower = text.toLowerCase()
    return [lower, ...lower.split(/[^\p{L}\p{N}]+/u)]
  })
  const words = [...commonWords, ...own.filter((word) => word.length >= 3)]
  return countBeyond(plain, words) < 4
}

/** True for a text that repeats a part of at most four characters. */
const isRepeated = (text: string) => /^(.{1,4})\1+.{0,3}$/s.test(text)

/**
 * Words that common passwords consist of, compiled by hand. Longer passwords in lists of leaked ones are mostly such
 * words, repeated, joined, or with digits and signs around them.
 */
const commonWords =
  `password passwort passwd pass motdepasse contrasena senha qwerty qwertz azerty qwertyuiop asdfghjkl zxcvbnm asdf zxcv
  qazwsx qwer admin administrator root superuser operator user guest test tester testing demo default changeme change
  welcome letmein login signin secret iloveyou love lovely sunshine princess prince monkey dragon football baseball
  basketball soccer hockey superman batman spiderman starwars pokemon master shadow ashley michael jennifer jordan
  charlie daniel jessica nicole hunter ranger killer trustno one two three freedom whatever computer internet server
  samsung google facebook microsoft windows apple linux ubuntu docker assay malware virus scanner scan company office
  home house summer winter spring autumn january february march april may june july august september october november
  december monday tuesday wednesday thursday friday saturday sunday hello world hallo my is the i you me new old abc abcd
  abcdef abcdefg abcdefgh abcdefghijkl correcthorsebatterystaple temp temporary system manager service account private
  security secure access foobar foo bar baz lorem ipsum hunter flower cookie cheese chocolate banana orange purple yellow
  please enter open sesame opensesame god jesus angel babygirl baby girl boy family liverpool chelsea arsenal barcelona`
    .split(/\s+/)
    .sort((a, b) => b.length - a.length)

/** Rows of keyboards and sequences, of which parts are common as well. */
const sequences = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm', '01234567890', 'abcdefghijklmnopqrstuvwxyz', 'qwertzuiop']
  .flatMap((row) => [row, row.split('').reverse().join('')])
  .map((row) => row + row)

const letterOfSign: Record<string, string> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
}

/**
 * Counts the letters and digits beyond common words and sequences. Words are also found where digits and signs stand for
 * letters. Four digits are a year or a date, and add nothing.
 */
function countBeyond(text: string, words: string[]): number {
  const chars = text.split('')
  const isKnown = chars.map(() => false)
  const asLetters = chars.map((char) => letterOfSign[char] ?? char).join('')
  for (const word of words) {
    if (word.length < 3) continue
    for (const form of [text, asLetters]) {
      for (let at = form.indexOf(word); at !== -1; at = form.indexOf(word, at + 1)) {
        isKnown.fill(true, at, at + word.length)
      }
    }
  }
  for (let at = 0; at < chars.length; at++) {
    const length = countSequence(text, at)
    if (length >= 3) isKnown.fill(true, at, at + length)
  }
  const rest = chars.filter((_, at) => isKnown[at] === false).join('')
  const letters = rest.replaceAll(/[^\p{L}]/gu, '').length
  const digits = rest.replaceAll(/\D/g, '').length
  return letters + Math.max(0, digits - 4)
}

/** Counts the characters from `at` on that follow each other on a keyboard, in the alphabet or in counting. */
function countSequence(text: string, at: number): number {
  let length = 0
  while (at + length < text.length && sequences.some((row) => row.includes(text.slice(at, at + length + 1)))) length++
  return length
}
