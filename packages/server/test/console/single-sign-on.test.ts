import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { makeAuditLog } from '../../src/database/console/audit-log.ts'
import { makeMemberStore } from '../../src/database/console/member-store.ts'
import { makeAttemptStore } from '../../src/database/console/session-store.ts'
import { makeSsoStore } from '../../src/database/console/sso-store.ts'
import { makeAuthentication, makePasswords } from '../../src/domain/console/authentication.ts'
import { makeInvitations } from '../../src/domain/console/invitations.ts'
import { makeSignIn } from '../../src/domain/console/sign-in.ts'
import { makeSingleSignOn } from '../../src/domain/console/single-sign-on.ts'
import { type RoleRule, toMappedRoles } from '../../src/domain/console/sso-admission.ts'
import { makeThrottle } from '../../src/domain/console/throttle.ts'
import { type Identity, IdentityError, type SignInSecrets } from '../../src/domain/ports/member-store.ts'
import { Problem } from '../../src/domain/problem.ts'
import { makePasswordHashing } from '../../src/runtime/password-hashing.ts'
import { silentLog } from '../support/silent-log.ts'
import { testSealer } from '../support/test-sealer.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

const issuer = 'https://login.example.com'
const origin = { address: '192.0.2.1', agent: 'test' }

test('roles are mapped from a list, a text, or a path to one of them', () => {
  const rules = [
    { value: 'admins', role: 'operator', accountId: null },
    { value: 'staff', role: 'member', accountId: 'a' },
    { value: 'leads', role: 'owner', accountId: 'a' },
    { value: '*', role: 'member', accountId: 'b' },
  ] as const
  const map = (claims: object, claim = 'groups') => toMappedRoles(claims as Record<string, unknown>, claim, [...rules])
  const everybody = { accountId: 'b', role: 'member' }
  assert.deepEqual(map({}), { isOperator: false, accounts: [everybody] })
  assert.deepEqual(map({ groups: 'admins' }), { isOperator: true, accounts: [everybody] })
  for (const groups of [
    ['staff', 'leads'],
    ['leads', 'staff'],
  ]) {
    assert.deepEqual(map({ groups }).accounts, [{ accountId: 'a', role: 'owner' }, everybody], 'an owner stays one')
  }
  assert.equal(map({ realm: { roles: ['admins'] } }, 'realm.roles').isOperator, true)
  assert.equal(map({ 'https://example.com/roles': ['admins'] }, 'https://example.com/roles').isOperator, true)
  for (const groups of [['*'], [['admins']], { admins: true }, 'ADMINS', ' admins', null]) {
    assert.deepEqual(map({ groups }), { isOperator: false, accounts: [everybody] }, JSON.stringify(groups))
  }
})

describe('the rules of the operator', () => {
  let stores: TestStores
  let parts: ReturnType<typeof makeParts>
  let accountId: string
  before(async () => {
    stores = await openTestStores()
    parts = makeParts(stores)
    accountId = (await stores.register()).id
  })
  after(() => stores.close())

  const newIdentity = (email: string): Identity => ({
    issuer,
    subject: randomUUID(),
    email,
    isEmailVerified: true,
    name: 'Ada',
    claims: {},
  })

  /** Signs in as this person at the issuer. */
  async function signIn(
    identity: Identity | IdentityError,
    rules: Partial<Parameters<typeof makeSingleSignOn>[0]['rules']> = {},
  ) {
    let begun: SignInSecrets | undefined
    const sso = makeSingleSignOn({
      ...parts,
      log: silentLog,
      provider: {
        issuer,
        toSignInUrl: async (secrets) => {
          begun = secrets
          return 'https://login.example.com/auth'
        },
        identify: async () => {
          if (identity instanceof Error) throw identity
          return identity
        },
        findSignOutUrl: () => undefined,
        findFault: async () => undefined,
        findLastFault: async () => undefined,
      },
      rules: {
        domains: ['example.com'],
        roleClaim: 'groups',
        roles: [],
        creates: false,
        linksByEmail: false,
        isRequired: false,
        ...rules,
      },
    })
    const { token } = await sso.start(null)
    return sso.finish({ code: 'x', state: begun?.state ?? '' }, token, origin, undefined)
  }

  async function addMember(): Promise<{ id: string; email: string }> {
    const member = { id: randomUUID(), email: `${randomUUID()}@example.com` }
    await stores.database.pool.query(
      "insert into members (id, email, name, password_hash) values ($1, $2, 'Ada', 'hash')",
      [member.id, member.email],
    )
    const membership = "insert into memberships (member_id, account_id, role) values ($1, $2, 'member')"
    await stores.database.pool.query(membership, [member.id, accountId])
    return member
  }
  const isForbidden = (error: unknown) => error instanceof Problem && error.refusal.kind === 'forbidden'

  test('a verified address links a member only where the operator says so', async () => {
    const { id, email } = await addMember()
    const identity = newIdentity(email)
    await assert.rejects(signIn(identity), isForbidden)
    assert.notEqual(await signIn(identity, { linksByEmail: true }), 'linked')
    assert.equal((await parts.store.findMember(identity))?.id, id)
    // From then on the subject identifies the person, also after the address has changed.
    assert.notEqual(await signIn({ ...identity, email: 'other@example.com' }), 'linked')
    // A second person at the issuer with the same address does not replace the first.
    await assert.rejects(signIn(newIdentity(email), { linksByEmail: true }), Problem)
  })

  test('a link by the address ends the password, the sessions and the links of the member', async () => {
    const { id, email } = await addMember()
    const password = 'correct horse battery'
    const update = 'update members set password_hash = $2 where id = $1'
    await stores.database.pool.query(update, [id, await parts.passwords.hash(password)])
    const opened = await parts.signIn.signIn({ email, password }, origin)
    assert(opened !== 'code-needed')
    const invitations = makeInvitations(parts)
    const reset = await invitations.resetPassword(email, { removesTotp: false, actor: 'test' })
    assert(reset)

    const roles = [{ value: 'admins', role: 'operator' as const, accountId: null }]
    const boss = { ...newIdentity(email), claims: { groups: ['admins'] } }
    const session = await signIn(boss, { linksByEmail: true, roles })
    assert(session !== 'linked')
    assert.equal((await parts.signIn.findVisitor(session.token))?.member.isOperator, true)
    assert.equal(await parts.signIn.findVisitor(opened.token), undefined)
    await assert.rejects(parts.signIn.signIn({ email, password }, origin), Problem)
    await assert.rejects(invitations.getLink(reset.token), Problem)
  })

  test('a verified address never replaces a second factor', async () => {
    const { id, email } = await addMember()
    const query = 'update members set totp_confirmed_at = now() where id = $1'
    await stores.database.pool.query(query, [id])
    await assert.rejects(signIn(newIdentity(email), { linksByEmail: true }), isForbidden)
  })

  test('nobody is created without a rule and a role in an account that exists', async () => {
    const identity = newIdentity('new@example.com')
    const rule = (account: string) => ({ value: '*', role: 'member' as const, accountId: account })
    await assert.rejects(signIn(identity, { roles: [rule(accountId)] }), isForbidden)
    await assert.rejects(signIn(identity, { creates: true }), isForbidden)
    await assert.rejects(signIn(identity, { creates: true, roles: [rule(randomUUID())] }), isForbidden)
    assert.equal(await parts.members.findByEmail('new@example.com'), undefined)
    assert.notEqual(await signIn(identity, { creates: true, roles: [rule(accountId)] }), 'linked')
  })

  test('an answer that the issuer does not confirm is no entry in the audit log', async () => {
    const countEntries = async () => (await stores.database.pool.query('select from audit_log')).rows.length
    const before = await countEntries()
    await assert.rejects(signIn(new IdentityError('x', { isUnreachable: false })), isForbidden)
    assert.equal(await countEntries(), before)
  })

  describe('roles', () => {
    const invitations = () => makeInvitations(parts)
    /** A person with these roles by single sign-on, and with a password that they know. */
    async function addPerson(roles: RoleRule[]) {
      const identity = newIdentity(`${randomUUID()}@example.com`)
      await signIn(identity, { creates: true, roles })
      const member = await parts.store.findMember(identity)
      assert(member)
      const password = 'correct horse battery'
      const reset = await invitations().resetPassword(member.email, { removesTotp: false, actor: 'test' })
      await invitations().accept(reset?.token ?? '', { name: 'Ada', email: member.email, password }, origin)
      const accept = ({ token }: { token: string }) =>
        invitations().accept(token, { name: 'Ada', email: member.email, password }, origin)
      return { identity, id: member.id, accept }
    }
    const operator: RoleRule = { value: '*', role: 'operator', accountId: null }
    const listRoles = async (id: string) => {
      const memberships = await parts.members.listMemberships(id)
      const isOperator = (await parts.members.findMember(id))?.isOperator === true
      return [...(isOperator ? ['operator'] : []), ...memberships.map(({ role }) => role)]
    }

    test('that a link gives are not taken away by single sign-on', async () => {
      const { id: other } = await stores.register()
      const roles: RoleRule[] = [
        operator,
        { value: '*', role: 'member', accountId },
        { value: '*', role: 'owner', accountId: other },
      ]
      const { identity, id, accept } = await addPerson(roles)
      await accept(await invitations().invite({ role: 'owner', accountId }))
      await accept(await invitations().invite({ role: 'operator', accountId: null }))
      // The role of an owner that single sign-on gives does not become one of Assay by an invitation as a member.
      await accept(await invitations().invite({ role: 'member', accountId: other }))
      assert.deepEqual(await listRoles(id), ['operator', 'owner', 'owner'])
      assert.notEqual(await signIn(identity), 'linked')
      assert.deepEqual(await listRoles(id), ['operator', 'owner'])
      assert.equal((await parts.members.listMemberships(id))[0]?.accountId, accountId)
    })

    test('that nobody else has are not taken away by disconnecting', async () => {
      const { id: owned } = await stores.register()
      const owner: RoleRule = { value: '*', role: 'owner', accountId: owned }
      const first = await addPerson([owner])
      assert.equal(await parts.store.unlink(first.id), 'last')
      assert.deepEqual(await listRoles(first.id), ['owner'])
      assert.equal((await parts.store.findMember(first.identity))?.id, first.id)
      await addPerson([owner])
      assert.equal(await parts.store.unlink(first.id), 'done')
      assert.deepEqual(await listRoles(first.id), [])
      assert.equal(await parts.store.unlink(first.id), 'not-found')

      await stores.database.pool.query('update members set is_operator = false')
      const boss = await addPerson([operator])
      assert.equal(await parts.store.unlink(boss.id), 'last')
      await addPerson([operator])
      assert.equal(await parts.store.unlink(boss.id), 'done')
      assert.deepEqual(await listRoles(boss.id), [])
    })
  })

  test('of two first sign-ins at the same time, one creates the person', async () => {
    const identity = newIdentity('twice@example.com')
    const rules = { creates: true, roles: [{ value: '*', role: 'member' as const, accountId }] }
    const results = await Promise.allSettled([signIn(identity, rules), signIn(identity, rules)])
    assert(results.some(({ status }) => status === 'fulfilled'))
    const { rows } = await stores.database.pool.query('select from members where email = $1', ['twice@example.com'])
    assert.equal(rows.length, 1)
  })

  test('a sign-in that took longer than ten minutes is refused, and cleaned up', async () => {
    const { pool } = stores.database
    await parts.store.addAttempt({ digest: 'ab'.repeat(32), sessionId: null, lifetimeMs: 600_000 })
    await pool.query("update sso_attempts set expires_at = now() - interval '1 second'")
    assert.equal(await parts.store.takeAttempt('ab'.repeat(32)), undefined)
    await parts.members.deleteExpired({ devicesMs: 0, failuresMs: 0 })
    assert.equal((await pool.query('select from sso_attempts')).rows.length, 0)
  })
})

function makeParts({ database }: TestStores) {
  const { pool } = database
  const members = makeMemberStore({ pool, sealer: testSealer })
  const audit = makeAuditLog({ pool })
  const passwords = makePasswords(makePasswordHashing())
  const throttle = makeThrottle({ attempts: makeAttemptStore({ pool }) })
  const authentication = makeAuthentication({ members, passwords, throttle, audit, clock: database.clock })
  const signIn = makeSignIn({ members, authentication, audit })
  return { store: makeSsoStore({ pool }), members, passwords, authentication, signIn, audit }
}
