import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { makeAuditLog } from '../../src/database/console/audit-log.ts'
import { makeListStore } from '../../src/database/console/list-store.ts'
import { makeMemberStore } from '../../src/database/console/member-store.ts'
import { makeRejectedRequestStore, makeScanHistory } from '../../src/database/console/scan-history.ts'
import { makeInvitations } from '../../src/domain/console/invitations.ts'
import { makeSignIn } from '../../src/domain/console/sign-in.ts'
import type { ListEntry } from '../../src/domain/ports/list-store.ts'
import { Problem } from '../../src/domain/problem.ts'
import { openRejectedRequests } from '../../src/workers/rejected-requests.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const origin = { address: '192.0.2.1', agent: 'test' }
const given = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }

describe('the console, as time goes by', () => {
  let stores: TestStores
  let now = Date.now()
  const clock = { now: () => new Date(now) }
  let members: ReturnType<typeof makeMemberStore>
  let signIn: ReturnType<typeof makeSignIn>
  let invitations: ReturnType<typeof makeInvitations>
  before(async () => {
    stores = await openTestStores()
    const { pool } = stores.database
    const audit = makeAuditLog({ pool })
    members = makeMemberStore({ pool })
    signIn = makeSignIn({ members, audit, clock })
    invitations = makeInvitations({ members, signIn, audit, clock })
  })
  after(() => stores.close())

  test('a link works for seven days and no longer', async () => {
    const { token } = await invitations.invite({ role: 'operator', accountId: null })
    now += 7 * dayMs - 1000
    assert.equal((await invitations.getLink(token)).role, 'operator')
    now += 2000
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
    now += 12 * hourMs - 60_000
    assert.equal((await signIn.findVisitor(idle))?.member.email, given.email)
    now += 12 * hourMs + 1000
    assert.equal(await signIn.findVisitor(idle), undefined)

    const busy = await open()
    const end = now + 7 * dayMs
    while (now + 6 * hourMs < end) {
      now += 6 * hourMs
      assert(await signIn.findVisitor(busy))
    }
    now = end + 1000
    assert.equal(await signIn.findVisitor(busy), undefined)
    const { rows } = await stores.database.pool.query('select from console_sessions')
    assert(rows.length > 0)
    await members.deleteExpired(clock.now(), clock.now())
    assert.equal((await stores.database.pool.query('select from console_sessions')).rows.length, 0)
  })

  test('each wrong password beyond the fifth doubles the pause, up to 15 minutes; an hour resets it', async () => {
    const email = 'guessed@example.com'
    const guess = () => signIn.signIn({ email, password: 'wrong' }, { ...origin, address: String(now) })
    for (let n = 0; n < 5; n++) await assert.rejects(guess(), isKind('signed-out'))
    const pauses: number[] = []
    for (let n = 0; n < 10; n++) {
      const refused = await guess().catch((error: Problem) => error.refusal)
      assert(refused !== 'code-needed' && 'kind' in refused && refused.kind === 'rate-limited')
      pauses.push(refused.retryAfterSeconds)
      now += refused.retryAfterSeconds * 1000
      await assert.rejects(guess(), isKind('signed-out'))
    }
    assert.deepEqual(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 900, 900])
    now += hourMs + 1000
    for (let n = 0; n < 5; n++) await assert.rejects(guess(), isKind('signed-out'))
    await assert.rejects(guess(), isKind('rate-limited'))
  })

  test('failures from one network address cause a pause; successful sign-ins are not counted', async () => {
    const stores = { address: '192.0.2.77', agent: 'test' }
    const patience = { freeFailures: 50, firstPauseMs: 5000, longestPauseMs: 60_000, memoryMs: hourMs }
    const fail = () => members.countAttempt(`address:${stores.address}`, clock.now(), patience)
    for (let n = 0; n < 48; n++) assert.equal(await fail(), undefined)
    for (let n = 0; n < 4; n++) assert.notEqual(await signIn.signIn(given, stores), 'code-needed')
    for (let n = 0; n < 2; n++) assert.equal(await fail(), undefined)
    await assert.rejects(signIn.signIn(given, stores), isKind('rate-limited'))
    assert.notEqual(await signIn.signIn(given, { ...stores, address: '192.0.2.78' }), 'code-needed')
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
    ]) {
      await assert.rejects(pool.query(statement), /The audit log only grows/, statement)
    }
    assert.equal(await count(), before)
  })

  test('expired list entries are not listed, and are deleted', async () => {
    const lists = makeListStore(stores.database)
    const entry: ListEntry = {
      id: '019b0000-0000-7000-8000-000000000001',
      value: 'a',
      reason: 'b',
      ...({ list: 'allow', matches: 'sha256' } as const),
      createdBy: 'c',
      createdAt: clock.now(),
      expiresAt: new Date(now + 1000),
    }
    await lists.addEntry(entry)
    assert.equal((await lists.listEntries(clock.now())).length, 1)
    now += 2000
    assert.equal((await lists.listEntries(clock.now())).length, 0)
    assert.equal(await lists.deleteExpired(clock.now()), 1)
  })

  test('rejected requests are counted by account, day and status, and written once', async () => {
    const { id } = await stores.register()
    const store = makeRejectedRequestStore(stores.database)
    for (let round = 0; round < 2; round++) {
      const counter = openRejectedRequests({ store, clock, log: silentLog })
      for (let n = 0; n < 3; n++) counter.count(id, 403)
      counter.count(id, 429)
      await counter.close()
      await counter.close()
    }
    const day = clock.now().toISOString().slice(0, 10)
    const history = makeScanHistory(stores.database)
    assert.deepEqual(await history.listRejectedRequests(id, new Date(now - dayMs)), [
      { day, status: 403, count: 6 },
      { day, status: 429, count: 2 },
    ])
    assert.equal(await store.deleteOld(new Date(now + 2 * dayMs)), 2)
  })
})

const isKind = (kind: string) => (error: unknown) => error instanceof Problem && error.refusal.kind === kind
