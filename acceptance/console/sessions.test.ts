import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { after, before, describe, test } from 'node:test'
import type { AccountView, KeyRow, Notice } from '@assay/contract/admin'
import {
  type Admin,
  goodPassword,
  makeAdmin,
  newEmail,
  nobody,
  openAccount,
  toCode,
  toToken,
  type Visitor,
} from '../support/console.ts'
import { assertProblem } from '../support/problems.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { type Service, startService } from '../support/start-service.ts'

const shared = getSharedService()
const { admin } = shared
const signedOut = { status: 401, kind: 'signed-out' as const }
const forbidden = { status: 403, kind: 'forbidden' as const }
const gone = { status: 404, kind: 'not-found' as const }
const validation = (...errors: string[]) => ({ status: 422, kind: 'validation' as const, errors })

type AccountOfSession = { id: string; name: string; role: string; suspended_reason?: string | null }
type Session = {
  member: { id: string; email: string; role: string; has_totp: boolean; recovery_codes_left: number }
  account: AccountOfSession | null
  accounts: AccountOfSession[]
}
const getSession = (who: Visitor) => admin.ask<Session>(who, 'GET', '/session')
/** The newest audit entry with this action by or about a person. Other test files add entries at the same time. */
async function findAudit(action: string, email: string) {
  type Page = { items: { actor: string; target: string | null }[] }
  const { items } = await admin.ask<Page>(admin.token, 'GET', `/operator/audit?action=${action}&limit=100`)
  return items.find(({ actor, target }) => actor === email || target === email)
}
const assertSignedOut = async (who: Visitor) => assertProblem(await admin.send(who, 'GET', '/session'), signedOut)

describe('the first operator', { skip: alreadyTested }, () => {
  let service: Service
  let own: Admin
  before(async () => {
    service = await startService({ ASSAY_PUBLIC_URL: 'https://scan.example.com' }, 'kept', { options: ['--test'] })
    own = makeAdmin(service.url, '')
  })
  after(() => service.stop())

  test('signs up with the link of the first start, once, and owns the first account', async () => {
    const { consoleLink } = service
    assert.match(consoleLink, /^https:\/\/scan\.example\.com\/console\/welcome#[\w-]{43}$/)
    const link = await own.send(nobody, 'POST', '/link', { body: { token: toToken(consoleLink) } })
    assert.deepEqual(JSON.parse(link.text), {
      purpose: 'first-operator',
      role: 'operator',
      account_name: 'first account',
      email: null,
      is_member: false,
    })
    // Only one of several simultaneous requests succeeds.
    const answers = await Promise.all([1, 2, 3, 4].map(() => own.accept(consoleLink)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404])
    assert.equal((await own.send(nobody, 'POST', '/link', { body: { token: toToken(consoleLink) } })).status, 404)

    const [set = ''] = answers.find(({ status }) => status === 200)?.headers['set-cookie'] ?? []
    const [pair, ...attributes] = set.split('; ')
    assert.match(pair ?? '', /^__Host-assay_session=[\w-]{43}$/)
    // Secure because the public address uses https; without an expiry the cookie ends with the browser.
    assert.deepEqual(attributes.sort(), ['HttpOnly', 'Path=/', 'SameSite=Strict', 'Secure'])
    const session = await own.ask<Session>({ cookie: pair ?? '' }, 'GET', '/session')
    assert.equal(session.member.role, 'operator')
    assert.equal(session.account?.name, 'first account')
  })

  test('without ASSAY_ADMIN_TOKEN no token is accepted', async () => {
    for (const authorization of ['Bearer ', 'Bearer undefined', 'Bearer null', 'Bearer x', 'Bearer']) {
      assert.equal((await own.send({ authorization }, 'GET', '/operator/status')).status, 401, authorization)
    }
  })
})

describe('sessions', () => {
  test('an invitation adds one member to the account, with a long password', async () => {
    const { owner, account } = await openAccount(admin, { name: 'Invited & sons' })
    const email = newEmail()
    const invited = await admin.ask<{ id: string; url: string }>(owner, 'POST', '/members', { role: 'member', email })
    const found = await admin.ask(nobody, 'POST', '/link', { token: toToken(invited.url) })
    assert.deepEqual(found, {
      purpose: 'invitation',
      role: 'member',
      account_name: 'Invited & sons',
      email,
      is_member: false,
    })
    for (const password of [
      '',
      'short',
      'elevenchars',
      'x'.repeat(201),
      'Password2026!',
      `${email.split('@', 1)[0]}12345`,
    ]) {
      await assertProblem(await admin.accept(invited.url, { email, password }), validation('password'), password)
    }
    await assertProblem(await admin.accept(invited.url, { email: 'nobody' }), validation('email'))
    await assertProblem(await admin.accept(invited.url, { email: newEmail('mallory') }), validation('email'))
    const answer = await admin.accept(invited.url, { email: email.toUpperCase() })
    const [set = ''] = answer.headers['set-cookie'] ?? []
    assert.deepEqual(set.split('; ').slice(1).sort(), ['HttpOnly', 'Path=/admin', 'SameSite=Strict'])
    const member = await admin.toVisitor(answer)
    const session = await getSession(member)
    assert.deepEqual(
      [session.member.role, session.member.email, session.account?.id],
      ['member', email.toUpperCase(), account.id],
    )
    await assertProblem(await admin.accept(invited.url), gone)
    assert(!JSON.stringify(await admin.ask(owner, 'GET', '/members')).includes('argon2'))
  })

  test('an email address belongs to one person, in any case, who may belong to several accounts', async () => {
    const { owner, email, account } = await openAccount(admin)
    const other = await openAccount(admin, { name: 'the other account' })
    const invite = () =>
      admin.ask<{ url: string }>(other.owner, 'POST', '/members', { role: 'member', email: email.toUpperCase() })
    const { url } = await invite()
    const link = await admin.ask<{ is_member: boolean }>(nobody, 'POST', '/link', { token: toToken(url) })
    assert.equal(link.is_member, true)
    // The link alone is not sufficient: the person proves who they are, and a failed attempt does not consume the link.
    await assertProblem(await admin.accept(url, { email, password: 'a password of mallory' }), signedOut)
    const both = await admin.toVisitor(await admin.accept(url, { email: email.toUpperCase() }))
    const session = await getSession(both)
    assert.deepEqual(
      [session.member.email, session.account?.name, session.account?.role],
      [email, 'the other account', 'member'],
    )
    assert.deepEqual(
      session.accounts.map(({ id, role }) => [id, role]),
      [
        [account.id, 'owner'],
        [other.account.id, 'member'],
      ],
    )
    // An owner here is a member there.
    await assertProblem(await admin.send(both, 'POST', '/members', { body: { role: 'owner' } }), forbidden)
    await admin.ask(both, 'PUT', '/session/account', { account_id: account.id })
    assert.equal((await getSession(both)).account?.role, 'owner')
    await admin.ask(both, 'POST', '/members', { role: 'owner', email: newEmail() })
    const stranger = await openAccount(admin)
    const choice = await admin.send(both, 'PUT', '/session/account', { body: { account_id: stranger.account.id } })
    await assertProblem(choice, gone)

    // Removed from one account, the person keeps the other, and loses the sessions in the first.
    await admin.ask(both, 'PUT', '/session/account', { account_id: other.account.id })
    await admin.ask(other.owner, 'DELETE', `/members/${session.member.id}`)
    await assertSignedOut(both)
    assert.equal((await getSession(owner)).account?.id, account.id)
    assert.equal((await admin.signIn(email.toUpperCase())).status, 200)
  })

  test('the keys of a removed member are listed to the owner, and stay marked', async () => {
    const { owner } = await openAccount(admin)
    const email = newEmail('leaving')
    const invited = await admin.ask<{ url: string }>(owner, 'POST', '/members', { role: 'member', email })
    const member = await admin.join(invited.url, email)
    await admin.ask(member, 'POST', '/keys', { name: 'deploy' })
    const revoked = await admin.ask<{ key: KeyRow }>(member, 'POST', '/keys', { name: 'revoked' })
    await admin.ask(member, 'POST', `/keys/${revoked.key.id}/revoke`, { name: 'revoked' })
    await admin.ask(owner, 'POST', '/keys', { name: 'of the owner' })
    const listMarked = async () =>
      (await admin.ask<KeyRow[]>(owner, 'GET', '/keys')).filter((key) => key.creator_left).map(({ name }) => name)
    assert.deepEqual(await listMarked(), [])
    const { member: person } = await getSession(member)
    const { keys } = await admin.ask<{ keys: KeyRow[] }>(owner, 'DELETE', `/members/${person.id}`)
    assert.deepEqual(
      keys.map(({ name, created_by }) => [name, created_by]),
      [['deploy', email]],
    )
    assert.deepEqual(await listMarked(), ['deploy', 'revoked'])
  })

  test('a removed invitation or member loses access immediately', async () => {
    const { owner } = await openAccount(admin)
    const email = newEmail('removed')
    const invite = () => admin.ask<{ id: string; url: string }>(owner, 'POST', '/members', { role: 'member', email })
    const first = await invite()
    await admin.ask(owner, 'DELETE', `/members/${first.id}`)
    await assertProblem(await admin.accept(first.url), gone)
    const member = await admin.join((await invite()).url, email)
    const { member: person } = await getSession(member)
    const self = (await getSession(owner)).member.id
    assert.equal((await admin.send(owner, 'DELETE', `/members/${self}`)).status, 409)
    await admin.ask(owner, 'DELETE', `/members/${person.id}`)
    await assertSignedOut(member)
    assert.equal((await admin.signIn(person.email)).status, 401)
  })

  test('signing out ends one session, signing out everywhere ends all', async () => {
    const { owner, email } = await openAccount(admin)
    const [second, third] = [
      await admin.toVisitor(await admin.signIn(email)),
      await admin.toVisitor(await admin.signIn(email)),
    ]
    const open = await admin.ask<{ is_this: boolean }[]>(second, 'GET', '/sessions')
    assert.deepEqual(open.map(({ is_this }) => is_this).sort(), [false, false, true])
    const fourth = await admin.toVisitor(await admin.signIn(email))
    const [own] = (await admin.ask<{ id: string; is_this: boolean }[]>(fourth, 'GET', '/sessions')).filter(
      ({ is_this }) => is_this,
    )
    const { owner: stranger } = await openAccount(admin)
    for (const id of [own?.id, 'x', randomUUID()]) {
      await assertProblem(await admin.send(stranger, 'DELETE', `/sessions/${id}`), gone, id)
    }
    await admin.ask(third, 'DELETE', `/sessions/${own?.id}`)
    await assertSignedOut(fourth)
    const answer = await admin.send(second, 'DELETE', '/session')
    assert.equal(answer.status, 204)
    assert.match(String(answer.headers['set-cookie']), /^assay_session=; Max-Age=0; Path=\/admin; HttpOnly/)
    await assertSignedOut(second)
    await getSession(third)
    await admin.ask(third, 'DELETE', '/sessions')
    await assertSignedOut(third)
    await assertSignedOut(owner)
  })

  test('a new password ends every session, opens a new one, and replaces the old password', async () => {
    const { owner, email } = await openAccount(admin)
    const other = await admin.toVisitor(await admin.signIn(email))
    const next = 'a different long password'
    const change = (body: object) => admin.send(owner, 'PUT', '/password', { body })
    await assertProblem(await change({ current: 'not this one', next }), validation('current'))
    await assertProblem(await change({ current: goodPassword, next: 'qwertyuiop12' }), validation('next'))
    await getSession(other)
    const changed = await change({ current: goodPassword, next })
    assert.equal(changed.status, 204)
    await assertSignedOut(owner)
    await assertSignedOut(other)
    const [set = ''] = changed.headers['set-cookie'] ?? []
    assert.equal((await getSession({ cookie: set.split(';', 1)[0] ?? '' })).member.email, email)
    await assertProblem(await admin.signIn(email), signedOut)
    assert.equal((await admin.signIn(email, next)).status, 200)
  })

  test('a stolen session does not serve to guess the password', async () => {
    const { owner, email } = await openAccount(admin)
    // The new password is too common, so that a check which succeeds changes nothing.
    const change = (current: string) =>
      admin.send(owner, 'PUT', '/password', { body: { current, next: 'qwertyuiop12' } })
    const remove = (password: string) => admin.send(owner, 'DELETE', '/totp', { body: { password } })
    let guesses = 0
    const says = await assertPause({
      guess: () => (guesses++ % 2 === 0 ? change : remove)('wrong'),
      guessStatus: 422,
      refused: [() => change(goodPassword), () => remove(goodPassword)],
    })
    assert.match(says, /You stay signed in/)
    // The person signs in elsewhere and is not delayed.
    const elsewhere = await admin.toVisitor(await admin.signIn(email))
    await admin.ask(elsewhere, 'DELETE', '/totp', { password: goodPassword })
  })

  test('the operator’s command creates a link for a new password', async () => {
    const { owner, email } = await openAccount(admin)
    const { path } = (await shared.operate('operators', 'reset', email)) as { path: string }
    const link = await admin.ask<{ purpose: string; email: string }>(nobody, 'POST', '/link', { token: toToken(path) })
    assert.deepEqual([link.purpose, link.email], ['new-password', email])
    const next = 'a password I remember'
    // The link is for one person, whatever address the form contains.
    const back = await admin.toVisitor(await admin.accept(path, { email: newEmail('mallory'), password: next }))
    assert.equal((await getSession(back)).member.email, email)
    await assertSignedOut(owner)
    assert.equal((await admin.signIn(email, next)).status, 200)
    assert.equal((await findAudit('password.reset', email))?.actor, email)
    const { code, err } = await runProgram(shared.settings, 'operators', 'reset', newEmail('no'))
    assert.equal(code, 1)
    assert.match(err, /There is no console user with the address/)
  })

  test('after five wrong passwords a guesser must wait, and the person need not', async () => {
    const { email } = await openAccount(admin)
    const bystander = await openAccount(admin)
    const guesser = fromNetwork()
    const person = fromNetwork()
    const device = toDevice(await admin.signIn(email, goodPassword, {}, person))
    const says = await assertPause({
      guess: () => admin.signIn(email, 'wrong', {}, guesser),
      guessStatus: 401,
      refused: [
        () => admin.signIn(email, goodPassword, {}, guesser),
        () => admin.signIn(email.toUpperCase(), goodPassword, {}, guesser),
      ],
    })
    assert.equal((await admin.signIn(email, goodPassword, {}, person)).status, 200, 'another network')
    assert.equal(
      (await admin.signIn(email, goodPassword, {}, { ...guesser, ...device })).status,
      200,
      'a known browser',
    )
    assert.equal((await admin.signIn(bystander.email, goodPassword, {}, guesser)).status, 200, 'another person')
    // An unknown address behaves the same, so that it cannot be distinguished from a known one.
    const unknown = newEmail('unknown')
    const first = await admin.signIn(unknown, goodPassword, {}, guesser)
    const known = await admin.signIn(bystander.email, 'wrong', {}, guesser)
    const toProblem = (text: string) => ({ ...JSON.parse(text), traceId: '' })
    assert.deepEqual(toProblem(first.text), toProblem(known.text))
    const saysOfUnknown = await assertPause({
      guess: () => admin.signIn(unknown, goodPassword, {}, guesser),
      guessStatus: 401,
      earlier: 1,
    })
    assert.equal(saysOfUnknown, says)
    assert.match(says, /for this email address\. Wait N seconds, then try again\. If you forgot the password/)
  })

  test('X-Forwarded-For counts for the address in sessions, as far as proxies are trusted', async () => {
    const { email } = await openAccount(admin)
    const who = await admin.toVisitor(
      await admin.signIn(email, goodPassword, {}, { 'x-forwarded-for': '203.0.113.66, 198.51.100.7' }),
    )
    const open = await admin.ask<{ is_this: boolean; address: string }[]>(who, 'GET', '/sessions')
    // The first address is what the client claims: only the one that the trusted proxy saw counts.
    assert.equal(open.find(({ is_this }) => is_this)?.address, '198.51.100.7')
  })

  test('wrong operator tokens cause a pause for their network only', async () => {
    const guesser = fromNetwork()
    const wrong = { ...guesser, authorization: `Bearer ${'x'.repeat(40)}` }
    const send = (who: Visitor) => admin.send(who, 'GET', '/operator/plans')
    let refused = await send(wrong)
    for (let n = 0; n < 60 && refused.status === 401; n++) refused = await send(wrong)
    await assertProblem(refused, { status: 429, kind: 'rate-limited' })
    await assertProblem(await send({ ...admin.token, ...guesser }), { status: 429, kind: 'rate-limited' })
    assert.equal((await send({ ...admin.token, ...fromNetwork() })).status, 200)
  })

  test('simultaneous guesses are limited like guesses in sequence', async () => {
    const { email } = await openAccount(admin)
    const guesser = fromNetwork()
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, n) => admin.signIn(email, `wrong ${n}`, {}, guesser)),
    )
    const checked = answers.filter(({ status }) => status === 401).length
    assert(checked <= 6, `${checked} of 24 guesses were checked`)
    assert(answers.every(({ status }) => status === 401 || status === 429))
  })

  test('with an authenticator app, each code works once, and removing the app needs the password', async () => {
    const { owner, email } = await openAccount(admin)
    // A stolen session cannot add an app of its own.
    await assertProblem(await admin.send(owner, 'POST', '/totp', { body: {} }), validation('password'))
    const guess = await admin.send(owner, 'POST', '/totp', { body: { password: 'wrong' } })
    await assertProblem(guess, validation('password'))
    const password = { password: goodPassword }
    const { secret, uri } = await admin.ask<{ secret: string; uri: string }>(owner, 'POST', '/totp', password)
    assert.equal(new URL(uri).searchParams.get('secret'), secret)
    // Sign-in needs no code before the first code is confirmed.
    assert.deepEqual(JSON.parse((await admin.signIn(email)).text), { state: 'signed-in' })
    const wrong = toCode(secret, 60)
    await assertProblem(await admin.send(owner, 'PUT', '/totp', { body: { code: wrong } }), validation('code'))
    const used = toCode(secret)
    const confirmed = await admin.ask<{ recovery_codes: string[] }>(owner, 'PUT', '/totp', { code: used })
    assert.equal(new Set(confirmed.recovery_codes).size, 10)
    assert.equal((await getSession(owner)).member.has_totp, true)
    assert.equal((await admin.send(owner, 'POST', '/totp', { body: password })).status, 409)

    const incomplete = await admin.signIn(email)
    assert.deepEqual(
      [JSON.parse(incomplete.text), incomplete.headers['set-cookie']],
      [{ state: 'code-needed' }, undefined],
    )
    await assertProblem(await admin.signIn(email, goodPassword, { code: used }), signedOut, 'used already')
    await assertProblem(await admin.signIn(email, 'wrong', { code: toCode(secret, 1) }), signedOut)
    // The clocks may differ by one step.
    const next = toCode(secret, 1)
    assert.equal((await admin.signIn(email, goodPassword, { code: next })).status, 200)
    await assertProblem(await admin.signIn(email, goodPassword, { code: next }), signedOut, 'used already')

    await assertProblem(
      await admin.send(owner, 'DELETE', '/totp', { body: { password: 'no' } }),
      validation('password'),
    )
    await admin.ask(owner, 'DELETE', '/totp', { password: goodPassword })
    assert.deepEqual(JSON.parse((await admin.signIn(email)).text), { state: 'signed-in' })
  })

  test('a link for a new password does not replace the code, and the operator’s command can remove the app', async () => {
    const { owner, email } = await openAccount(admin)
    const { secret } = await admin.ask<{ secret: string }>(owner, 'POST', '/totp', { password: goodPassword })
    await admin.ask(owner, 'PUT', '/totp', { code: toCode(secret) })
    const reset = async (...options: string[]) => {
      const { path } = (await shared.operate('operators', 'reset', email, ...options)) as { path: string }
      return path
    }
    const next = 'a password I remember'
    const accepted = await admin.accept(await reset(), { password: next })
    assert.deepEqual([JSON.parse(accepted.text), accepted.headers['set-cookie']], [{ state: 'code-needed' }, undefined])
    await assertSignedOut(owner)
    assert.deepEqual(JSON.parse((await admin.signIn(email, next)).text), { state: 'code-needed' })
    assert.equal((await admin.signIn(email, next, { code: toCode(secret, 1) })).status, 200)

    const last = 'another password I remember'
    const back = await admin.toVisitor(await admin.accept(await reset('--forget-app'), { password: last }))
    assert.equal((await getSession(back)).member.has_totp, false)
    const entry = await findAudit('totp.remove', email)
    // Under sudo, the name of the person who used it stands between.
    const { actor = '', target } = entry ?? {}
    assert(actor.startsWith('command line: ') && actor.endsWith(userInfo().username), actor)
    assert.equal(target, email)
  })

  test('a recovery code replaces a code of the app once, and new ones replace the old', async () => {
    const { owner, email } = await openAccount(admin)
    const { secret } = await admin.ask<{ secret: string }>(owner, 'POST', '/totp', { password: goodPassword })
    const { recovery_codes: codes } = await admin.ask<Codes>(owner, 'PUT', '/totp', { code: toCode(secret) })
    const [first = '', second = '', third = ''] = codes
    assert.match(first, /^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/)
    await assertProblem(await admin.signIn(email, goodPassword, { code: 'aaaa-aaaa-aaaa-aaaa' }), signedOut)
    await assertProblem(await admin.signIn(email, goodPassword, { code: 'short' }), validation('code'))
    await assertProblem(await admin.signIn(email, 'wrong', { code: first }), signedOut)
    assert.equal((await admin.signIn(email, goodPassword, { code: first })).status, 200)
    await assertProblem(await admin.signIn(email, goodPassword, { code: first }), signedOut, 'used already')
    const typed = second.toUpperCase().replaceAll('-', '')
    assert.equal((await admin.signIn(email, goodPassword, { code: typed })).status, 200)
    assert.equal((await getSession(owner)).member.recovery_codes_left, 8)
    assert.equal((await findAudit('recovery-code.use', email))?.actor, email)

    const renew = (password: string) => admin.send(owner, 'POST', '/totp/recovery-codes', { body: { password } })
    await assertProblem(await renew('wrong'), validation('password'))
    const { recovery_codes: renewed } = JSON.parse((await renew(goodPassword)).text) as Codes
    await assertProblem(await admin.signIn(email, goodPassword, { code: third }), signedOut, 'replaced')
    assert.equal((await admin.signIn(email, goodPassword, { code: renewed[0] })).status, 200)
    await admin.ask(owner, 'DELETE', '/totp', { password: goodPassword })
    assert.equal((await getSession(owner)).member.recovery_codes_left, 0)
    assert.equal((await renew(goodPassword)).status, 409)
  })

  test('members of a suspended account can only read why', async () => {
    const { owner, account } = await openAccount(admin)
    const path = `/operator/accounts/${account.id}`
    await admin.ask(admin.token, 'PATCH', path, { suspended: true, suspended_reason: 'The invoice is not paid.' })
    const view = await admin.ask<AccountView>(owner, 'GET', '/account')
    assert(view.suspended_at)
    assert.equal(view.suspended_reason, 'The invoice is not paid.')
    assert.equal((await getSession(owner)).account?.suspended_reason, 'The invoice is not paid.')
    for (const [method, route, body] of [
      ['GET', '/keys', undefined],
      ['GET', '/overview', undefined],
      ['POST', '/keys', { name: 'more' }],
      ['POST', '/webhooks/secret/reveal', undefined],
      ['POST', '/members', { role: 'owner' }],
      ['POST', '/scan/malware/scan/url', { file_url: 'http://example.com/' }],
    ] as const) {
      const answer = await admin.send(owner, method, route, body === undefined ? {} : { body })
      await assertProblem(answer, forbidden, route)
      assert.match(answer.text, /suspended: The invoice is not paid/, route)
    }
    await admin.ask(admin.token, 'PATCH', path, { suspended: false })
    assert.equal((await admin.ask<AccountView>(owner, 'GET', '/account')).suspended_reason, null)
    await admin.ask(owner, 'GET', '/keys')
  })

  test('owners are told that an operator invited an owner, or that a link set a new password, until they confirm', async () => {
    const { owner, account } = await openAccount(admin)
    const list = (who: Visitor) => admin.ask<Notice[]>(who, 'GET', '/notices')
    assert.deepEqual(await list(owner), [])
    const self = newEmail('operator')
    const invited = await admin.ask<{ url: string }>(
      admin.token,
      'POST',
      `/operator/accounts/${account.id}/invitation`,
      {
        email: self,
      },
    )
    const infiltrator = await admin.join(invited.url, self)
    const [notice] = await list(owner)
    assert.deepEqual([notice?.kind, notice?.actor, notice?.target], ['owner-invited', 'operator token', self])
    // A confirmation counts for the owner who sends it, not for the others.
    await admin.ask(infiltrator, 'POST', '/notices/confirm', { until: new Date().toISOString() })
    assert.equal((await list(owner)).length, 1)
    await admin.ask(owner, 'POST', '/notices/confirm', { until: notice?.at })
    assert.deepEqual(await list(owner), [])
    const { path } = (await shared.operate('operators', 'reset', self)) as { path: string }
    const renewed = await admin.toVisitor(await admin.accept(path, { password: 'a password I remember' }))
    // The person concerned is told as well: another person may have used the link.
    for (const who of [owner, renewed]) {
      assert.deepEqual(
        (await list(who)).map(({ kind, actor }) => [kind, actor]),
        [['password-reset', self]],
      )
    }
  })
})

type Codes = { recovery_codes: string[] }

type Answer = Awaited<ReturnType<Admin['send']>>
type Guessing = {
  guess: () => Promise<Answer>
  /** Status of a guess that was checked and is wrong. */
  guessStatus: number
  /** Attempts that the pause refuses as well, although they are right. */
  refused?: (() => Promise<Answer>)[]
  /** Wrong guesses of the same subject before. */
  earlier?: number
}

/**
 * Guesses until the pause after five wrong guesses refuses one, and expects the pause to refuse the other attempts. The
 * pause lasts 5 s at first, which may pass in between on a busy machine: then the guesses are repeated.
 */
async function assertPause({ guess, guessStatus, refused = [], earlier = 0 }: Guessing) {
  let wrong = earlier
  for (let round = 1; ; round++) {
    let answer = await guess()
    // The limit keeps all rounds below the 50 failures after which the network has a pause.
    for (let n = 1; answer.status === guessStatus; n++) {
      wrong++
      if (n === 8) break
      answer = await guess()
    }
    assert(wrong >= 5, `refused after ${wrong} wrong guesses`)
    const answers = [answer, ...(await Promise.all(refused.map((send) => send())))]
    if (round < 5 && answers.some(({ status }) => status !== 429)) continue
    for (const one of answers) {
      await assertProblem(one, { status: 429, kind: 'rate-limited' })
      const seconds = Number(one.headers['retry-after'])
      assert(seconds >= 1 && seconds <= 5 * 2 ** (wrong - 5), `Retry-After: ${seconds} after ${wrong} wrong guesses`)
      assert.match(one.text, seconds === 1 ? /Wait 1 second\b/ : new RegExp(`Wait ${seconds} seconds`))
    }
    // The sentence without its time.
    return String(JSON.parse(answer.text).detail).replace(/\d+ seconds?/, 'N seconds')
  }
}

let networks = 0
/** A client in a network of its own, so that its wrong passwords delay no other test. */
const fromNetwork = (): Visitor => ({
  'x-forwarded-for': `2001:db8:${(process.pid % 65_536).toString(16)}:${(++networks).toString(16)}::1`,
})

/** The cookie by which the service recognises a browser that signed in before. */
function toDevice(answer: { headers: { 'set-cookie'?: string[] | undefined } }): Visitor {
  const set = answer.headers['set-cookie']?.find((cookie) => cookie.startsWith('assay_device=')) ?? ''
  assert.match(set, /^assay_device=[\w-]{43}; Max-Age=34560000; Path=\/admin; HttpOnly; SameSite=Strict$/)
  return { cookie: set.split(';', 1)[0] ?? '' }
}
