import type { Role } from '@assay/contract/admin'

export type Member = {
  id: string
  accountId: string | null
  accountName: string | null
  role: Role
  email: string
  name: string
  passwordHash: string
  totpSecret: Buffer | null
  totpConfirmedAt: Date | null
  createdAt: Date
  lastSeenAt: Date | null
}

type NewMember = Pick<Member, 'id' | 'accountId' | 'role' | 'email' | 'name' | 'passwordHash'>

export type Link = {
  id: string
  purpose: 'first-operator' | 'invitation' | 'new-password'
  role: Role
  accountId: string | null
  accountName: string | null
  memberId: string | null
  email: string | null
  createdAt: Date
  expiresAt: Date
}

type NewLink = Omit<Link, 'accountName'> & { digest: string }

export type OpenSession = {
  id: string
  createdAt: Date
  lastSeenAt: Date
  address: string
  agent: string
}

/** Members of the console, their sessions and their one-time links. Digests are SHA-256 in hex. */
export type MemberStore = {
  /** The oldest account, for the first operator to own; undefined when there is an operator already. */
  findFirstOperatorAccount(): Promise<{ accountId: string | null } | undefined>
  findByEmail(email: string): Promise<Member | undefined>
  findMember(id: string): Promise<Member | undefined>
  listMembers(accountId: string): Promise<Member[]>
  setPassword(id: string, passwordHash: string): Promise<void>
  /** Null removes the secret. It is required at sign-in once it is confirmed. */
  setTotp(id: string, secret: Buffer | null, confirmedAt: Date | null): Promise<void>
  /** Returns false when this step, or a later one, was used before. */
  takeTotpStep(id: string, step: number): Promise<boolean>
  removeMember(accountId: string, id: string): Promise<boolean>

  openSession(session: OpenSession & { digest: string; memberId: string; expiresAt: Date }): Promise<void>
  /** Also records the use of the session. Finds nothing when it has expired, or was idle since before that time. */
  findSession(digest: string, now: Date, idleSince: Date): Promise<{ id: string; member: Member } | undefined>
  listSessions(memberId: string): Promise<OpenSession[]>
  closeSession(id: string): Promise<void>
  closeSessions(memberId: string, except?: string): Promise<void>

  /** Replaces links of the same purpose, account and email address. */
  addLink(link: NewLink): Promise<void>
  findLink(digest: string, now: Date): Promise<Link | undefined>
  listLinks(accountId: string, now: Date): Promise<Link[]>
  removeLink(accountId: string, id: string): Promise<boolean>
  /** Uses the link and creates the member: `link-invalid` when the link was used or has expired. */
  acceptLink(digest: string, now: Date, member: NewMember): Promise<'accepted' | 'link-invalid' | 'email-in-use'>
  /** Uses the link and sets the password of its member. */
  acceptReset(digest: string, now: Date, passwordHash: string): Promise<'accepted' | 'link-invalid'>

  /**
   * Counts an attempt as failed before its result is known, so that concurrent attempts count like successive ones.
   * During the pause after earlier failures it counts nothing and returns how long to wait.
   */
  countAttempt(subject: string, now: Date, limits: AttemptLimits): Promise<{ waitMs: number } | undefined>
  /** Takes back one attempt that did not fail. */
  uncountAttempt(subject: string): Promise<void>
  forgetFailures(subject: string): Promise<void>
  /** Deletes expired sessions and links, and failures before that time. Returns how many. */
  deleteExpired(now: Date, failuresBefore: Date): Promise<number>
}

/**
 * `freeFailures` cause no pause; each failure beyond them doubles it, up to the longest. `memoryMs` without an attempt
 * resets the count.
 */
type AttemptLimits = { freeFailures: number; firstPauseMs: number; longestPauseMs: number; memoryMs: number }
