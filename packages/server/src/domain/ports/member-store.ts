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

/** Those who use the console, their sessions and the links that let them in. Digests are SHA-256 in hex. */
export type MemberStore = {
  /** Nothing when there is an operator; else the oldest account, for the first operator to hold. */
  findVacancy(): Promise<{ accountId: string | null } | undefined>
  findByEmail(email: string): Promise<Member | undefined>
  findMember(id: string): Promise<Member | undefined>
  listMembers(accountId: string): Promise<Member[]>
  setPassword(id: string, passwordHash: string): Promise<void>
  /** Null forgets it. It counts once it is confirmed. */
  setTotp(id: string, secret: Buffer | null, confirmedAt: Date | null): Promise<void>
  /** False when this step, or a later one, was taken before. */
  takeTotpStep(id: string, step: number): Promise<boolean>
  removeMember(accountId: string, id: string): Promise<boolean>

  openSession(session: OpenSession & { digest: string; memberId: string; expiresAt: Date }): Promise<void>
  /** Renews it, too. Nothing when it has ended, or was idle since before that time. */
  findSession(digest: string, now: Date, idleSince: Date): Promise<{ id: string; member: Member } | undefined>
  listSessions(memberId: string): Promise<OpenSession[]>
  closeSession(id: string): Promise<void>
  /** All but one. */
  closeSessions(memberId: string, but?: string): Promise<void>

  /** Takes the place of others of the same purpose, account and address. */
  addLink(link: NewLink): Promise<void>
  findLink(digest: string, now: Date): Promise<Link | undefined>
  listLinks(accountId: string, now: Date): Promise<Link[]>
  removeLink(accountId: string, id: string): Promise<boolean>
  /** Uses the link up and makes the member, or neither: `gone` when somebody was faster, `taken` when the address is. */
  acceptLink(digest: string, now: Date, member: NewMember): Promise<'accepted' | 'gone' | 'taken'>
  /** Uses the link up and gives the member it is for a new password. */
  acceptReset(digest: string, now: Date, passwordHash: string): Promise<'accepted' | 'gone'>

  /**
   * Counts an attempt as failed before its outcome is known, so that many at once are counted like many in turn. Returns
   * the time left to wait, and counts nothing, when it comes within the pause that earlier failures have earned.
   */
  takeAttempt(subject: string, now: Date, patience: Patience): Promise<{ waitMs: number } | undefined>
  /** It did not fail after all. */
  forgiveAttempt(subject: string): Promise<void>
  forgetFailures(subject: string): Promise<void>
  /** Sessions and links that have ended, and failures nobody asks for any more. */
  sweep(now: Date, failuresBefore: Date): Promise<number>
}

/** So many failures are free; each one beyond them doubles the pause. They are forgotten after a time without any. */
type Patience = { freeFailures: number; firstPauseMs: number; longestPauseMs: number; memoryMs: number }
