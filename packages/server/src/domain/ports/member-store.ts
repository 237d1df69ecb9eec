import type { AccountRole, Role } from '@assay/contract/admin'

/** A person who may use the console. */
export type Member = {
  id: string
  email: string
  name: string
  isOperator: boolean
  suspendedAt: Date | null
  passwordHash: string
  totpConfirmedAt: Date | null
  recoveryCodesLeft: number
  createdAt: Date
  lastSeenAt: Date | null
}

/** What a person is in one account. */
export type Membership = {
  accountId: string
  accountName: string
  role: AccountRole
  accountSuspendedAt: Date | null
  suspendedReason: string | null
}

export type AccountMember = Member & { role: AccountRole }

type NewMember = Pick<Member, 'id' | 'email' | 'name' | 'passwordHash'>

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

type ConfirmedTotp = {
  secret: Buffer
  /** Step of the code that confirmed the app: this code is used up. */
  step: number
  recoveryDigests: string[]
}

type NewLink = Omit<Link, 'accountName' | 'createdAt' | 'expiresAt'> & { digest: string; lifetimeMs: number }

export type OpenSession = {
  id: string
  createdAt: Date
  lastSeenAt: Date
  expiresAt: Date
  address: string
  agent: string
  /** Whether the issuer of single sign-on opened it. */
  isSso: boolean
}

type NewSession = Omit<OpenSession, 'createdAt' | 'lastSeenAt' | 'expiresAt'> & {
  digest: string
  deviceDigest: string
  memberId: string
  /** The hash with which the password was checked. */
  passwordHash: string
  accountId: string | null
  lifetimeMs: number
  /** Ends the session before its lifetime is over; null to use the lifetime. */
  expiresAt: Date | null
}

type FoundSession = { id: string; member: Member; membership: Membership | undefined }

/** `last`: nothing was changed, because no other operator, or owner of the account, can sign in. */
export type Removal = 'done' | 'not-found' | 'last'
/** `mayBeLast` allows to remove or suspend the last operator as well. */
type LastOperator = { mayBeLast?: boolean }

/** Members of the console, their sessions and their one-time links. Digests are SHA-256 in hex. */
export type MemberStore = {
  /** The oldest account, for the first operator to own; undefined when there is an operator already. */
  findFirstOperatorAccount(): Promise<{ accountId: string | null } | undefined>
  findByEmail(email: string): Promise<Member | undefined>
  findMember(id: string): Promise<Member | undefined>
  listMembers(accountId: string): Promise<AccountMember[]>
  /** The accounts of a person, the one that was joined first at the front. */
  listMemberships(memberId: string): Promise<Membership[]>
  listOperators(): Promise<Member[]>
  /** Suspends an operator and ends the sessions, or ends the suspension. */
  suspendOperator(id: string, isSuspended: boolean, options?: LastOperator): Promise<Removal>
  /** Deletes the person, with the memberships in all accounts. */
  removeOperator(id: string, options?: LastOperator): Promise<Removal>
  /**
   * Replaces the hash of the password, ends all sessions and links for a new password, and forgets all browsers, or
   * does nothing of this. Returns false when the hash is no longer `from`.
   */
  setPassword(id: string, hashes: { from: string; to: string }): Promise<boolean>
  /** Stores a secret, without effect until it is confirmed. Returns false when an app is confirmed already. */
  startTotp(id: string, secret: Buffer): Promise<boolean>
  /** From now on sign-in needs a code of the app. Returns false when an app was confirmed before. */
  confirmTotp(id: string, app: ConfirmedTotp): Promise<boolean>
  /** Removes the authenticator app and its recovery codes. */
  removeTotp(id: string): Promise<void>
  /** Throws when the stored secret was changed, or is not that of this member. */
  findTotpSecret(id: string): Promise<Buffer | null>
  /** Returns false when this step, or a later one, was used before. */
  takeTotpStep(id: string, step: number): Promise<boolean>
  setRecoveryCodes(id: string, digests: string[]): Promise<void>
  /** Returns false when there is no such code, or it was used before. */
  takeRecoveryCode(id: string, digest: string): Promise<boolean>
  /** Ends the membership and its sessions. A person without another account who is no operator is deleted. */
  removeMember(accountId: string, id: string): Promise<Removal>
  /** Records that an owner has read the notices up to this time. */
  setNoticesSeen(accountId: string, memberId: string, at: Date): Promise<void>
  findNoticesSeen(accountId: string, memberId: string): Promise<Date | null>

  /**
   * Also remembers the browser. Returns false, and does nothing, when the member is suspended or the hash of the
   * password is no longer the one that was checked.
   */
  openSession(session: NewSession): Promise<boolean>
  /** Also records the use of the session. Finds nothing when it has expired, or was idle for that time. */
  findSession(digest: string, idleMs: number): Promise<FoundSession | undefined>
  /** Makes the session work in another account. */
  setSessionAccount(id: string, accountId: string): Promise<void>
  /** Leaves out sessions that have expired, or were idle for that time. */
  listSessions(memberId: string, idleMs: number): Promise<OpenSession[]>
  closeSession(id: string): Promise<void>
  closeSessions(memberId: string): Promise<void>
  isKnownDevice(memberId: string, digest: string): Promise<boolean>

  /** Replaces links of the same purpose, account and email address. Returns when the new one expires. */
  addLink(link: NewLink): Promise<Date>
  findLink(digest: string): Promise<Link | undefined>
  listLinks(accountId: string): Promise<Link[]>
  removeLink(accountId: string, id: string): Promise<boolean>
  /**
   * Uses the link and creates the member: `link-invalid` when the link was used or has expired, or is the link of the
   * first operator and there is one already.
   */
  acceptLink(digest: string, member: NewMember): Promise<'accepted' | 'link-invalid' | 'email-in-use'>
  /** Uses the link for a member who exists: adds the membership or the role that it offers. */
  joinByLink(digest: string, memberId: string): Promise<'accepted' | 'link-invalid'>
  /** Uses the link, sets the password of its member, ends all sessions and forgets all browsers. */
  acceptReset(digest: string, passwordHash: string): Promise<'accepted' | 'link-invalid'>

  /** Deletes expired sessions, links and single sign-ons, and devices and failures of these ages. Returns how many. */
  deleteExpired(ages: { devicesMs: number; failuresMs: number }): Promise<number>
}

/**
 * `freeFailures` cause no pause; each failure beyond them doubles it, up to the longest. `memoryMs` without an attempt
 * resets the count.
 */
export type AttemptLimits = { freeFailures: number; firstPauseMs: number; longestPauseMs: number; memoryMs: number }

/** Failed attempts to guess a secret, by subject. */
export type AttemptStore = {
  /**
   * Counts an attempt as failed before its result is known, so that concurrent attempts count like successive ones.
   * During the pause after earlier failures it counts nothing and returns how long to wait.
   */
  countAttempt(subject: string, limits: AttemptLimits): Promise<{ waitMs: number } | undefined>
  /** How long the pause of a subject still lasts; undefined when there is none. */
  findPause(subject: string, limits: AttemptLimits): Promise<{ waitMs: number } | undefined>
  /** Takes back one attempt that did not fail. */
  uncountAttempt(subject: string): Promise<void>
  forgetFailures(subject: string): Promise<void>
}

/** The roles that the role mapping gives to a person. */
export type MappedRoles = { isOperator: boolean; accounts: { accountId: string; role: AccountRole }[] }

type IdentityKey = Pick<Identity, 'issuer' | 'subject'>

/** Single sign-ons that were begun, and the members that belong to persons at an issuer. */
export type SsoStore = {
  addAttempt(attempt: { digest: string; sessionId: string | null; lifetimeMs: number }): Promise<void>
  /** Removes the attempt, so that it can be finished once. Undefined when it is unknown, used or too old. */
  takeAttempt(digest: string): Promise<{ sessionId: string | null } | undefined>
  findMember(key: IdentityKey): Promise<Member | undefined>
  /** Returns false when the email address is in use. */
  createMember(member: NewMember): Promise<boolean>
  /** Returns false when the person at the issuer belongs to another member, or the member to another person. */
  link(key: IdentityKey, memberId: string): Promise<boolean>
  /** Removes the link and the roles that came with it. */
  unlink(memberId: string): Promise<Removal>
  /**
   * Gives the mapped roles, and takes away those that an earlier mapping gave. Roles that were given in Assay stay.
   * Returns the changes, such as `+operator`.
   */
  setRoles(memberId: string, roles: MappedRoles): Promise<string[]>
  describe(memberId: string, sessionId: string): Promise<{ isLinked: boolean; isSsoSession: boolean }>
}

/** A person at the issuer, as a verified ID token describes them. */
export type Identity = {
  issuer: string
  /** Identifies the person at the issuer for ever; email addresses may change hands. */
  subject: string
  email: string | undefined
  isEmailVerified: boolean
  name: string | undefined
  claims: Record<string, unknown>
}

/** Values that tie an answer of the issuer to the browser that began the sign-in. */
export type SignInSecrets = { state: string; nonce: string; verifier: string }

/** The parameters with which the issuer sends the browser back. */
export type IssuerAnswer = { code?: string; state: string; iss?: string; error?: string }

/** A sign-in that the issuer did not confirm. The message is for the log and the audit log. */
export class IdentityError extends Error {
  /** True if the issuer did not answer, so that another attempt may succeed. */
  readonly isUnreachable: boolean

  constructor(message: string, { isUnreachable, cause }: { isUnreachable: boolean; cause?: unknown }) {
    super(message, { cause })
    this.isUnreachable = isUnreachable
  }
}

/** An OpenID Connect issuer. Every function that asks it throws an IdentityError. */
export type IdentityProvider = {
  issuer: string
  /** The page of the issuer on which the person signs in. */
  toSignInUrl(secrets: SignInSecrets): Promise<string>
  /** Exchanges the code of the answer for an ID token, and verifies it. */
  identify(answer: IssuerAnswer, secrets: SignInSecrets): Promise<Identity>
  /** The page of the issuer that ends the session there; undefined if there is none, or it is not known yet. */
  findSignOutUrl(): string | undefined
  /** Asks the issuer and returns why it cannot be used; undefined if it can. */
  findFault(): Promise<string | undefined>
  /** The same by the last answer of the issuer. Asks again at times, and waits only for the first answer. */
  findLastFault(): Promise<string | undefined>
}
