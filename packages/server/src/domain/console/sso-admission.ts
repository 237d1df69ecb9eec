import { v7 as newId } from 'uuid'
import type { Identity, MappedRoles, Member, MemberStore, SsoStore } from '../ports/member-store.ts'
import type { AuditLog } from '../ports/operations.ts'
import { Problem } from '../problem.ts'
import { type Origin, type Passwords, requireActive } from './authentication.ts'
import { newToken, type OpenedSession, type SignIn } from './sign-in.ts'

export type SsoRules = {
  /** Domains of the email addresses that may sign in; empty for all. */
  domains: string[]
  roleClaim: string
  roles: RoleRule[]
  /** Whether people whom Assay does not know get access at their first sign-in. */
  creates: boolean
  /** Whether a verified email address suffices to link a person who has a password already. */
  linksByEmail: boolean
  /** Whether sign-in with a password is refused. */
  isRequired: boolean
}

export type SsoAdmissionDeps = {
  rules: SsoRules
  store: SsoStore
  members: MemberStore
  passwords: Passwords
  signIn: SignIn
  audit: AuditLog
  log: { warn(fields: object, text: string): void }
}

/** A new person for whom no role is left, because the accounts of the rules do not exist: nothing is kept of them. */
class NoRole extends Error {}

const noAccess = 'You have no access to this service yet. Ask an operator, or the owner of your account.'
const noRoleLeft = 'You have no role in this service any more. Ask an operator, or the owner of your account.'
const hasPassword =
  'You have a password for this service already. Sign in with it, then connect single sign-on on the page You.'

/** Decides by the rules of the operator which persons at the issuer may enter, as whom, and with which roles. */
export function makeSsoAdmission(deps: SsoAdmissionDeps) {
  const { rules, store, members, passwords, signIn } = deps
  const { note, refuse } = makeNotes(deps)
  const requireAddress = makeAddressCheck(rules, refuse)

  return {
    async enter(identity: Identity, origin: Origin): Promise<OpenedSession> {
      const email = await requireAddress(identity, origin)
      const known = await store.findMember(identity)
      if (known !== undefined) return open(async () => known, identity, origin)
      const sameAddress = await members.findByEmail(email)
      return sameAddress === undefined ? create(identity, email, origin) : linkByAddress(sameAddress, identity, origin)
    },
    /** Links a signed-in member who proved to be this person at the issuer. */
    async connect(member: Member, identity: Identity, origin: Origin) {
      await requireAddress(identity, origin)
      await deps.audit.atomically(async () => {
        await link(member, identity, origin)
        await setRoles(member, identity, origin)
      })
    },
  }

  /**
   * A verified address shows that the issuer knows the person. It replaces their password only where the operator says
   * so, and never a second factor. The password and the sessions of the member end: an invitation shows its link to the
   * owner who invites, so the member may have been made by somebody who does not have the address.
   */
  async function linkByAddress(member: Member, identity: Identity, origin: Origin): Promise<OpenedSession> {
    if (!rules.linksByEmail || member.totpConfirmedAt !== null) {
      return refuse(member.email, origin, 'a member with this address is not linked', hasPassword)
    }
    requireActive(member)
    const passwordHash = await passwords.hash(newToken())
    const prepare = async () => {
      await link(member, identity, origin)
      if (!(await members.setPassword(member.id, { from: member.passwordHash, to: passwordHash })))
        throw newConcurrent()
      return member
    }
    return open(prepare, identity, origin)
  }

  async function create(identity: Identity, email: string, origin: Origin): Promise<OpenedSession> {
    const { isOperator, accounts } = toRoles(identity)
    if (!rules.creates) return refuse(email, origin, 'unknown person', noAccess)
    if (!isOperator && accounts.length === 0) return refuse(email, origin, 'no role is mapped', noAccess)
    const name = (identity.name?.trim() || email).slice(0, 200)
    // The password is random and forgotten: the person can set one only by a link of an operator.
    const passwordHash = await passwords.hash(newToken())
    const id = newId()
    const prepare = async () => {
      const isCreated = await store.createMember({ id, email, name, passwordHash })
      const member = isCreated ? await members.findMember(id) : undefined
      if (member === undefined) throw newConcurrent()
      await note(email, 'member.create', origin, 'single sign-on')
      await link(member, identity, origin)
      return member
    }
    return open(prepare, identity, origin, { isNew: true })
  }

  /** Applies the roles and opens a session. A person who has no role left is refused, and keeps none. */
  async function open(prepare: () => Promise<Member>, identity: Identity, origin: Origin, { isNew = false } = {}) {
    const email = identity.email ?? ''
    const work = async () => {
      const member = await prepare()
      await setRoles(member, identity, origin)
      const current = await members.findMember(member.id)
      const [membership] = await members.listMemberships(member.id)
      if (current === undefined || (!current.isOperator && membership === undefined)) {
        if (isNew) throw new NoRole()
        return undefined
      }
      const accountId = membership?.accountId ?? null
      const session = await signIn.openSession(current, accountId, origin, { isSso: true })
      await note(member.email, 'session.open', origin, 'single sign-on', accountId)
      return session
    }
    try {
      return (await deps.audit.atomically(work)) ?? (await refuse(email, origin, 'no role is left', noRoleLeft))
    } catch (error) {
      if (!(error instanceof NoRole)) throw error
      return refuse(email, origin, 'the accounts of the mapped roles do not exist', noAccess)
    }
  }

  async function link({ id, email }: Member, identity: Identity, origin: Origin) {
    if (!(await store.link(identity, id))) {
      throw new Problem({ kind: 'conflict', detail: 'You, or this person at the provider, are linked already.' })
    }
    await note(email, 'sso.link', origin, `${identity.email} at ${identity.issuer}`)
  }

  async function setRoles({ id, email }: Member, identity: Identity, origin: Origin) {
    const changes = await store.setRoles(id, toRoles(identity))
    if (changes.length > 0) await note(email, 'member.roles', origin, changes.join(', '))
  }

  function toRoles({ claims }: Identity): MappedRoles {
    return toMappedRoles(claims, rules.roleClaim, rules.roles)
  }
}

type Refuse = (email: string | undefined, origin: Origin, why: string, detail: string) => Promise<never>

function makeNotes({ audit, log }: Pick<SsoAdmissionDeps, 'audit' | 'log'>) {
  const note = (actor: string, action: string, { address }: Origin, detail: string, accountId: string | null = null) =>
    audit.note({ actor, action, target: actor, detail, accountId, address })
  const refuse: Refuse = async (email, origin, why, detail) => {
    log.warn({ email, why }, 'single sign-on refused')
    await note((email ?? 'unknown').slice(0, 254), 'session.refused', origin, `single sign-on: ${why}`.slice(0, 500))
    throw new Problem({ kind: 'forbidden', detail })
  }
  return { note, refuse }
}

/** Returns the email address of the person, which the issuer must have verified and the operator must allow. */
const makeAddressCheck =
  ({ domains }: SsoRules, refuse: Refuse) =>
  async ({ email, isEmailVerified }: Identity, origin: Origin): Promise<string> => {
    if (email === undefined || email.length > 254 || !/^[^\s@]+@[^\s@]+$/.test(email)) {
      return refuse(undefined, origin, 'no email address', 'Your provider did not send your email address.')
    }
    if (!isEmailVerified) {
      const detail = 'Your provider has not verified your email address. Verify it there, then sign in again.'
      return refuse(email, origin, 'the email address is not verified', detail)
    }
    const domain = email.slice(email.lastIndexOf('@') + 1).toLowerCase()
    if (domains.length > 0 && !domains.includes(domain)) {
      const detail = `Email addresses of ${domain} cannot sign in here. Ask an operator of this service.`
      return refuse(email, origin, 'the domain is not allowed', detail)
    }
    return email
  }

const newConcurrent = () =>
  new Problem({ kind: 'conflict', detail: 'Somebody just used this address at the same time. Try again.' })

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
  const found = claims[claim] ?? claim.split('.').reduce<unknown>(findProperty, claims)
  return (Array.isArray(found) ? found : [found]).filter((value) => typeof value === 'string')
}

const findProperty = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
