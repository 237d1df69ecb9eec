import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { makeAuditLog } from '../../src/database/console/audit-log.ts'
import { makeMemberStore } from '../../src/database/console/member-store.ts'
import { makeAttemptStore } from '../../src/database/console/session-store.ts'
import { makeListStore } from '../../src/database/hash-list-store.ts'
import { makeRejectedRequestStore, makeScanHistory } from '../../src/database/scan-store.ts'
import { makeAuthentication, makePasswords, toDigest } from '../../src/domain/console/authentication.ts'
import { makeInvitations } from '../../src/domain/console/invitations.ts'
import { makeSignIn } from '../../src/domain/console/sign-in.ts'
import { makeThrottle } from '../../src/domain/console/throttle.ts'
import type { NewListEntry } from '../../src/domain/ports/hash-list-store.ts'
import { Problem } from '../../src/domain/problem.ts'
import { makePasswordHashing } from '../../src/runtime/password-hashing.ts'
import { openRejectedRequests } from '../../src/workers/activity-recorder.ts'
import { silentLog } from '../support/silent-log.ts'
import { testSealer } from '../support/test-sealer.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const origin = { address: '192.0.2.1', agent: 'test' }
const given = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }

describe('the console, as time goes by', () => {
  let stores: TestStores
  /** Moves everything that was recorded back in time, as if so much time had passed on the clock of the database. */
  const pass = async (ms: number) => {
    for (const [table, ...columns] of [
      ['console_links', 'created_at', 'expires_at'],
      ['console_sessions', 'created_at', 'last_seen_at', 'expires_at'],
      ['console_devices', 'last_used_at'],
      ['sign_in_failures', 'last_at'],
      ['list_entries', 'created_at', 'expires_at'],
    ]) {
      const changes = columns.map((column) => `${column} = ${column} - $1 * interval '1 millisecond'`)
      await stores.database.pool.query(`update ${table} set ${changes.join(', ')}`, [ms])
    }
  }
  /** Lets the pauses after wrong passwords begin now: checking passwords takes longer than a pause on a busy machine. */
  const restartPauses = () => stores.database.pool.query('update sign_in_failures set last_at = clock_timestamp()')
  let members: ReturnType<typeof makeMemberStore>
  let attempts: ReturnType<typeof makeAttemptStore>
  let signIn: ReturnType<typeof makeSignIn>
  let invitations: ReturnType<typeof makeInvitations>
  const getGiven = async () => {
    const member = await members.findByEmail(given.email)
    assert(member)
    return member
  }
  before(async () => {
    stores = await openTestStores()
    const { pool } = stores.database
    const audit = makeAuditLog({ pool })
    members = makeMemberStore({ pool, sealer: testSealer })
    attempts = makeAttemptStore({ pool })
    const passwords = makePasswords(makeCheapHashing())
    const shared = { members, passwords, throttle: makeThrottle({ attempts }), audit, clock: stores.database.clock }
    const authentication = makeAuthentication(shared)
    signIn = makeSignIn({ ...shared, authentication })
    invitations = makeInvitations({ ...shared, authentication, signIn })
  })
  after(() => stores.close())

  test('a link works for seven days and no longer', async () => {
    const { token } = await invitations.invite({ role: 'operator', accountId: null })
    await pass(7 * dayMs - 60_000)
    assert.equal((await invitations.getLink(token)).role, 'operator')
    await pass(61_000)
    await assert.rejects(invitations.accept(token, given, origin), isKind('not-found'))
    const { token: second } = await invitations.invite({ role: 'operator', accountId: null })
    const outcome = await invitations.accept(second, given, origin)
    assert(outcome !== 'code-needed')
    assert.match(outcome.token, /^[\w-]{43}$/)
  })

  test('a session ends twelve hours after it was last used, and after seven days in any case', async () => {
    const open = async () => {
      const outcome = await signIn.signIn(given, origin)
      assert(outcome !== 'code-needed')
      return outcome.token
    }
    const idle = await open()
    await pass(12 * hourMs - 60_000)
    assert.equal((await signIn.findVisitor(idle))?.member.email, given.email)
    await pass(12 * hourMs + 1000)
    assert.equal(await signIn.findVisitor(idle), undefined)
    assert.deepEqual(await signIn.listSessions((await getGiven()).id), [])

    const busy = await open()
    for (let hours = 6; hours < 7 * 24; hours += 6) {
      await pass(6 * hourMs)
      assert(await signIn.findVisitor(busy))
    }
    await pass(6 * hourMs)
    assert.equal(await signIn.findVisitor(busy), undefined)
    const { rows } = await stores.database.pool.query('select from console_sessions')
    assert(rows.length > 0)
    await members.deleteExpired({ devicesMs: 0, failuresMs: 0 })
    assert.equal((await stores.database.pool.query('select from console_sessions')).rows.length, 0)
  })

  test('a new password gives a new session, but no more time', async () => {
    const opened = await signIn.openSession(await getGiven(), null, origin, { isSso: true })
    const begun = await signIn.findVisitor(opened.token)
    assert(begun)
    const [before] = await signIn.listSessions(begun.member.id)
    await pass(6 * hourMs)
    const session = { id: begun.sessionId, accountId: null }
    const changed = await signIn.changePassword(begun.member, begun.member.passwordHash, session, origin)
    assert.equal(await signIn.findVisitor(opened.token), undefined)
    assert(await signIn.findVisitor(changed.token))
    const [after, ...others] = await signIn.listSessions(begun.member.id)
    assert.deepEqual(others, [])
    assert.equal(after?.isSso, true)
    assert.equal(after?.expiresAt.getTime(), (before?.expiresAt.getTime() ?? 0) - 6 * hourMs)
    await assert.rejects(signIn.changePassword(await getGiven(), 'hash', session, origin), isKind('signed-out'))
  })

  test('where single sign-on is required, a password accepts no invitation of an owner', async () => {
    const { id: accountId } = await stores.register()
    const { token } = await invitations.invite({ role: 'owner', accountId, email: given.email })
    const required = { acceptsPasswords: false }
    await assert.rejects(invitations.accept(token, given, origin, required), isKind('forbidden'))
    assert(await invitations.getLink(token), 'the link is not used')
    // Links of the commands on the server let people in while the issuer is down.
    const operator = await invitations.inviteOperator()
    assert.notEqual(await invitations.accept(operator.token, given, origin, required), 'code-needed')
    const reset = await invitations.resetPassword(given.email, { removesTotp: false, actor: 'test' })
    assert.notEqual(await invitations.accept(reset?.token ?? '', given, origin, required), 'code-needed')
    const person = { ...given, email: 'invited@example.com' }
    const { token: first } = await invitations.invite({ role: 'member', accountId, email: person.email })
    assert.notEqual(await invitations.accept(first, person, origin, required), 'code-needed')
  })

  test('each wrong password beyond the fifth doubles the pause, up to 15 minutes; an hour resets it', async () => {
    const email = 'guessed@example.com'
    const guess = () => signIn.signIn({ email, password: 'wrong' }, { ...origin, address: '192.0.2.5' })
    for (let n = 0; n < 5; n++) await assert.rejects(guess(), isKind('signed-out'))
    for (const pause of [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]) {
      await restartPauses()
      const refused = await guess().catch((error: Problem) => error.refusal)
      assert(refused !== 'code-needed' && 'kind' in refused && refused.kind === 'rate-limited')
      assert(refused.retryAfterSeconds <= pause && refused.retryAfterSeconds > pause / 2, `${pause} s`)
      await pass(refused.retryAfterSeconds * 1000)
      await assert.rejects(guess(), isKind('signed-out'))
    }
    await pass(hourMs + 1000)
    for (let n = 0; n < 5; n++) await assert.rejects(guess(), isKind('signed-out'))
    await restartPauses()
    await assert.rejects(guess(), isKind('rate-limited'))
  })

  test('a guesser waits, and the person does not: neither at another network nor in a browser that is known', async () => {
    const guesser = { ...origin, address: '198.51.100.1' }
    for (let n = 0; n < 5; n++) {
      await assert.rejects(signIn.signIn({ ...given, password: 'wrong' }, guesser), isKind('signed-out'))
    }
    await restartPauses()
    await assert.rejects(signIn.signIn(given, guesser), isKind('rate-limited'))
    const outcome = await signIn.signIn(given, origin)
    assert(outcome !== 'code-needed')
    // The same browser, now in the network of the guesser.
    const known = { ...guesser, device: outcome.device }
    assert.notEqual(await signIn.signIn(given, known), 'code-needed')
    await restartPauses()
    await assert.rejects(signIn.signIn(given, { ...guesser, device: 'another' }), isKind('rate-limited'))
    // The known browser is delayed by its own wrong passwords, and no other browser is.
    for (let n = 0; n < 10; n++) {
      await assert.rejects(signIn.signIn({ ...given, password: 'wrong' }, known), isKind('signed-out'))
    }
    await restartPauses()
    await assert.rejects(signIn.signIn(given, known), isKind('rate-limited'))
    assert.notEqual(await signIn.signIn(given, origin), 'code-needed')
    await pass(hourMs + 1000)
  })

  test('guesses from a /64 of IPv6 count together, and guesses from many networks have a limit as well', async () => {
    const email = 'wide@example.com'
    const guess = (address: string) => signIn.signIn({ email, password: 'wrong' }, { ...origin, address })
    for (let n = 0; n < 5; n++) await assert.rejects(guess(`2001:db8:0:1::${n + 1}`), isKind('signed-out'))
    await restartPauses()
    await assert.rejects(guess('2001:db8:0:1:ffff::1'), isKind('rate-limited'))
    await assert.rejects(guess('2001:db8:0:2::1'), isKind('signed-out'))
    const limits = { freeFailures: 100, firstPauseMs: 5000, longestPauseMs: 900_000, memoryMs: hourMs }
    for (let n = 0; n < 94; n++) await attempts.countAttempt(`email:${email}`, limits)
    await assert.rejects(guess('203.0.113.200'), isKind('rate-limited'))
    await pass(hourMs + 1000)
  })

  test('failures from one network address cause a pause; successful sign-ins are not counted', async () => {
    const stores = { address: '192.0.2.77', agent: 'test' }
    const patience = { freeFailures: 50, firstPauseMs: 5000, longestPauseMs: 60_000, memoryMs: hourMs }
    const fail = () => attempts.countAttempt(`address:${stores.address}`, patience)
    for (let n = 0; n < 48; n++) assert.equal(await fail(), undefined)
    for (let n = 0; n < 4; n++) assert.notEqual(await signIn.signIn(given, stores), 'code-needed')
    for (let n = 0; n < 2; n++) assert.equal(await fail(), undefined)
    await assert.rejects(signIn.signIn(given, stores), isKind('rate-limited'))
    assert.notEqual(await signIn.signIn(given, { ...stores, address: '192.0.2.78' }), 'code-needed')
  })

  test('attempts during the pause of a network leave no rows, whatever addresses they try', async () => {
    const { pool } = stores.database
    const network = { ...origin, address: '192.0.2.79' }
    const limits = { freeFailures: 50, firstPauseMs: 5000, longestPauseMs: 60_000, memoryMs: hourMs }
    for (let n = 0; n < 50; n++) await attempts.countAttempt(`address:${network.address}`, limits)
    const count = async () => (await pool.query('select from sign_in_failures')).rows.length
    const before = await count()
    for (let n = 0; n < 5; n++) {
      const guess = { email: `random-${n}@example.com`, password: 'wrong' }
      await assert.rejects(signIn.signIn(guess, network), isKind('rate-limited'))
    }
    assert.equal(await count(), before)
  })

  test('a password that was not checked because the queue is full is not counted as wrong', async () => {
    const busy = makePasswords({ derive: () => undefined })
    const throttle = makeThrottle({ attempts })
    const { clock } = stores.database
    const audit = makeAuditLog(stores.database)
    const { authenticate } = makeAuthentication({ members, passwords: busy, throttle, audit, clock })
    const elsewhere = { ...origin, address: '192.0.2.99' }
    for (let n = 0; n < 8; n++) await assert.rejects(authenticate(given, elsewhere), isKind('overloaded'))
    assert.notEqual(await signIn.signIn(given, elsewhere), 'code-needed')
  })

  test('a sign-in that began before a new password or a suspension opens no session', async () => {
    const { pool } = stores.database
    const { token } = await invitations.invite({ role: 'operator', accountId: null })
    const email = 'racing@example.com'
    await invitations.accept(token, { ...given, email }, origin)
    const { id = '', passwordHash = '' } = (await members.findByEmail(email)) ?? {}
    const count = async (table: string) =>
      (await pool.query(`select from ${table} where member_id = $1`, [id])).rows.length
    assert.deepEqual([await count('console_sessions'), await count('console_devices')], [1, 1])
    /** Signs in, and does the work while the password is checked. */
    const signInAround = async (work: () => Promise<unknown>) => {
      const isCorrect = async () => {
        await work()
        return true
      }
      const slow = { ...makePasswords({ derive: () => undefined }), isCorrect }
      const audit = makeAuditLog(stores.database)
      const { clock } = stores.database
      const shared = { members, passwords: slow, throttle: makeThrottle({ attempts }), audit, clock }
      return makeSignIn({ ...shared, authentication: makeAuthentication(shared) }).signIn({ ...given, email }, origin)
    }
    await assert.rejects(
      signInAround(() => members.setPassword(id, { from: passwordHash, to: 'another hash' })),
      isKind('signed-out'),
    )
    assert.deepEqual([await count('console_sessions'), await count('console_devices')], [0, 0])
    assert.equal(await members.setPassword(id, { from: passwordHash, to: 'a third hash' }), false)
    assert.equal((await members.findMember(id))?.passwordHash, 'another hash')
    await assert.rejects(
      signInAround(() => members.suspendOperator(id, true)),
      isKind('signed-out'),
    )
    await members.suspendOperator(id, false)
    assert.deepEqual([await count('console_sessions'), await count('console_devices')], [0, 0])

    // A new password whose transaction is open: the sign-in waits for its end.
    const client = await pool.connect()
    try {
      await client.query('begin')
      await client.query("update members set password_hash = 'a fourth hash' where id = $1", [id])
      const refused = assert.rejects(
        signInAround(async () => {}),
        isKind('signed-out'),
      )
      const isWaiting = async () =>
        (
          await pool.query(
            `select from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock' and query like '%admitted%'`,
          )
        ).rows.length > 0
      await waitUntil('the sign-in waits', isWaiting)
      await client.query('commit')
      await refused
    } finally {
      client.release(true)
    }
    assert.deepEqual([await count('console_sessions'), await count('console_devices')], [0, 0])
  })

  test('the newest 20 browsers of a person are remembered', async () => {
    const { token } = await invitations.invite({ role: 'operator', accountId: null })
    const email = 'many-browsers@example.com'
    await invitations.accept(token, { ...given, email }, origin)
    const member = await members.findByEmail(email)
    assert(member)
    const devices: string[] = []
    for (let n = 0; n < 21; n++) {
      await pass(1000)
      devices.push((await signIn.openSession(member, null, origin)).device)
    }
    const isKnown = (device = '') => members.isKnownDevice(member.id, toDigest(device))
    assert.deepEqual(await Promise.all([devices[0], devices[1], devices[20]].map(isKnown)), [false, true, true])
    // A browser that is used again is a new one.
    await pass(1000)
    await signIn.openSession(member, null, { ...origin, device: devices[1] })
    await pass(1000)
    await signIn.openSession(member, null, origin)
    assert.deepEqual(await Promise.all([devices[1], devices[2]].map(isKnown)), [true, false])
  })

  test('the link of the first start ends with the first operator, however that operator came', async () => {
    const { pool } = stores.database
    await pool.query('update members set is_operator = false')
    const first = await invitations.inviteFirstOperator()
    assert(first)
    const { token } = await invitations.invite({ role: 'operator', accountId: null })
    await invitations.accept(token, { ...given, email: 'second@example.com' }, origin)
    await assert.rejects(invitations.getLink(first.token), isKind('not-found'))
    assert.equal(await invitations.inviteFirstOperator(), undefined)
    // A node that made its link at the same moment: the link exists, and it gives nothing.
    await pool.query('update members set is_operator = false')
    const late = await invitations.inviteFirstOperator()
    assert(late)
    await pool.query("update members set is_operator = true where email = 'second@example.com'")
    const person = { ...given, email: 'late@example.com' }
    await assert.rejects(invitations.accept(late.token, person, origin), isKind('not-found'))
    assert.equal(await members.findByEmail(person.email), undefined)
  })

  test('the link of the first start and another operator’s link can be used at the same time', async () => {
    const { pool } = stores.database
    for (let round = 0; round < 5; round++) {
      await pool.query('update members set is_operator = false')
      const first = await invitations.inviteFirstOperator()
      const { token } = await invitations.invite({ role: 'operator', accountId: null })
      const accept = (used: string, name: string) =>
        members.acceptLink(toDigest(used), {
          id: randomUUID(),
          name,
          email: `${name}-${round}@example.com`,
          passwordHash: 'a hash',
        })
      const [one, other] = await Promise.all([accept(first?.token ?? '', 'first'), accept(token, 'invited')])
      // The link of the first start serves nobody after another operator.
      assert(one === 'accepted' || one === 'link-invalid', one)
      assert.equal(other, 'accepted')
    }
  })

  test('two operators, or two owners of an account, cannot remove each other at the same time', async () => {
    const { pool } = stores.database
    const account = await stores.register()
    await pool.query('update members set is_operator = false')
    const join = async (role: 'operator' | 'owner', email: string) => {
      const { token } = await invitations.invite({ role, accountId: role === 'owner' ? account.id : null })
      await invitations.accept(token, { ...given, email }, origin)
      return (await members.findByEmail(email))?.id ?? ''
    }
    const [one, two] = [await join('operator', 'op-one@example.com'), await join('operator', 'op-two@example.com')]
    const suspend = (id: string) => members.suspendOperator(id, true)
    assert.deepEqual((await Promise.all([suspend(one), suspend(two)])).sort(), ['done', 'last'])
    for (const id of [one, two]) assert.equal(await members.suspendOperator(id, false), 'done')
    const removals = await Promise.all([members.removeOperator(one), members.removeOperator(two)])
    assert.deepEqual(removals.sort(), ['done', 'last'])
    const [left] = await members.listOperators()
    assert.equal(await members.removeOperator(left?.id ?? '', { mayBeLast: true }), 'done')

    const owners = [await join('owner', 'own-one@example.com'), await join('owner', 'own-two@example.com')]
    const removed = await Promise.all(owners.map((id) => members.removeMember(account.id, id)))
    assert.deepEqual(removed.sort(), ['done', 'last'])
    assert.equal((await members.listMembers(account.id)).length, 1)
    assert.equal(await members.removeMember(account.id, randomUUID()), 'not-found')
  })

  test('the audit log cannot be changed or shortened by statements of the service', async () => {
    const { pool } = stores.database
    const count = async () => (await pool.query('select from audit_log')).rows.length
    const before = await count()
    assert(before > 0)
    for (const statement of [
      "update audit_log set actor = 'nobody'",
      'delete from audit_log',
      'delete from audit_log where false',
      'truncate audit_log',
      'truncate audit_log, audit_head cascade',
      'update audit_head set id = 0',
      'delete from audit_head',
      'insert into audit_head (single, id) values (false, 0)',
    ]) {
      await assert.rejects(pool.query(statement), /The audit log only grows/, statement)
    }
    assert.equal(await count(), before)
  })

  test('expired list entries are not listed, and are deleted', async () => {
    const lists = makeListStore(stores.database)
    const entry: NewListEntry = {
      id: '019b0000-0000-7000-8000-000000000001',
      value: 'a',
      reason: 'b',
      ...({ list: 'allow', matches: 'sha256' } as const),
      createdBy: 'c',
      expiresAt: new Date(stores.database.clock.now().getTime() + hourMs),
    }
    await lists.addEntry(entry)
    assert.equal((await lists.listEntries()).length, 1)
    assert.equal(await lists.deleteExpired(), 0)
    await pass(hourMs + 1000)
    assert.equal((await lists.listEntries()).length, 0)
    assert.equal(await lists.deleteExpired(), 1)
  })

  test('rejected requests are counted by account, day and status, and written once', async () => {
    const { id } = await stores.register()
    const store = makeRejectedRequestStore(stores.database)
    for (let round = 0; round < 2; round++) {
      const counter = openRejectedRequests({ store, isOutage: () => false, log: silentLog })
      for (let n = 0; n < 3; n++) counter.count(id, 403)
      counter.count(id, 429)
      await counter.close()
      await counter.close()
    }
    const day = '2026-03-01'
    await stores.database.pool.query('update rejected_requests set day = $1', [day])
    const history = makeScanHistory(stores.database)
    assert.deepEqual(await history.listRejectedRequests(id, new Date(day)), [
      { day, status: 403, count: 6 },
      { day, status: 429, count: 2 },
    ])
    assert.equal(await store.deleteOld(10_000), 0)
    assert.equal(await store.deleteOld(1), 2)
  })

  test('secrets of authenticator apps are sealed, and do not open for another member', async () => {
    const { pool } = stores.database
    const join = async (email: string) => {
      const { token } = await invitations.invite({ role: 'operator', accountId: null })
      await invitations.accept(token, { ...given, email }, origin)
      return (await members.findByEmail(email))?.id ?? ''
    }
    const [one, other] = [await join('one@example.com'), await join('other@example.com')]
    const secret = Buffer.from('a secret of twenty by')
    const app = { secret, step: 7, recoveryDigests: ['ab'.repeat(32)] }
    assert.equal(await members.startTotp(one, secret), true)
    // Of several confirmations at the same time, one is stored, with its recovery codes.
    const confirmed = await Promise.all([1, 2, 3].map(() => members.confirmTotp(one, app)))
    assert.deepEqual(confirmed.sort(), [false, false, true])
    assert.equal(await members.startTotp(one, Buffer.from('another secret')), false)
    assert.equal(await members.takeTotpStep(one, 7), false, 'the code that confirmed the app')
    assert.equal((await members.findMember(one))?.recoveryCodesLeft, 1)
    assert.deepEqual(await members.findTotpSecret(one), secret)
    assert.equal(await members.findTotpSecret(other), null)
    const { rows } = await pool.query<{ sealed: Buffer }>('select totp_secret as sealed from members where id = $1', [
      one,
    ])
    assert.equal(rows[0]?.sealed.includes(secret), false)
    await pool.query('update members set totp_secret = $2, totp_confirmed_at = now() where id = $1', [
      other,
      rows[0]?.sealed,
    ])
    await assert.rejects(members.findTotpSecret(other), /belongs elsewhere \(members\.totp_secret\)/)

    // A code that the service cannot check is not counted as wrong.
    const credentials = { ...given, email: 'other@example.com', code: '123456' }
    const elsewhere = { ...origin, address: '192.0.2.120' }
    await assert.rejects(signIn.signIn(credentials, elsewhere), /belongs elsewhere/)
    const failures = await pool.query("select from sign_in_failures where subject like '%192.0.2.120%'")
    assert.equal(failures.rows.length, 0)
  })
})

const isKind = (kind: string) => (error: unknown) => error instanceof Problem && error.refusal.kind === kind

/** Hashes with little memory: the tests of passwords hash with as much as the service does. */
function makeCheapHashing(): ReturnType<typeof makePasswordHashing> {
  const hashing = makePasswordHashing()
  return { ...hashing, derive: (input, options) => hashing.derive({ ...input, memory: 64, passes: 1 }, options) }
}
