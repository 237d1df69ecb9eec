import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  type Admin,
  goodPassword,
  makeAdmin,
  newEmail,
  nobody,
  openAccount,
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
const gone = { status: 404, kind: 'not-found' as const }
const validation = (...errors: string[]) => ({ status: 422, kind: 'validation' as const, errors })

type Session = {
  member: { id: string; email: string; role: string; has_totp: boolean }
  account: { id: string; name: string } | null
}
const getSession = (who: Visitor) => admin.ask<Session>(who, 'GET', '/session')
/** The newest audit entry with this action. */
async function findAudit(action: string) {
  type Page = { items: { actor: string; target: string | null }[] }
  return (await admin.ask<Page>(admin.token, 'GET', `/operator/audit?action=${action}&limit=1`)).items[0]
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
    })
    // Only one of several simultaneous requests succeeds.
    const answers = await Promise.all([1, 2, 3, 4].map(() => own.accept(consoleLink)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404])
    assert.equal((await own.send(nobody, 'POST', '/link', { body: { token: toToken(consoleLink) } })).status, 404)

    const [set = ''] = answers.find(({ status }) => status === 200)?.headers['set-cookie'] ?? []
    const [pair, ...attributes] = set.split('; ')
    assert.match(pair ?? '', /^assay_session=[\w-]{43}$/)
    // Secure because the public address uses https; without an expiry the cookie ends with the browser.
    assert.deepEqual(attributes.sort(), ['HttpOnly', 'Path=/admin', 'SameSite=Strict', 'Secure'])
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
    assert.deepEqual(found, { purpose: 'invitation', role: 'member', account_name: 'Invited & sons', email })
    for (const password of ['', 'short', 'elevenchars', 'x'.repeat(201)]) {
      await assertProblem(await admin.accept(invited.url, { email, password }), validation('password'), password)
    }
    await assertProblem(await admin.accept(invited.url, { email: 'nobody' }), validation('email'))
    const answer = await admin.accept(invited.url, { email })
    const [set = ''] = answer.headers['set-cookie'] ?? []
    assert.deepEqual(set.split('; ').slice(1).sort(), ['HttpOnly', 'Path=/admin', 'SameSite=Strict'])
    const member = await admin.toVisitor(answer)
    const session = await getSession(member)
    assert.deepEqual([session.member.role, session.member.email, session.account?.id], ['member', email, account.id])
    await assertProblem(await admin.accept(invited.url), gone)
    assert(!JSON.stringify(await admin.ask(owner, 'GET', '/members')).includes('argon2'))
  })

  test('an email address belongs to one person, in any case', async () => {
    const { owner, email } = await openAccount(admin)
    const { url } = await admin.ask<{ url: string }>(owner, 'POST', '/members', { role: 'member' })
    await assertProblem(await admin.accept(url, { email: email.toUpperCase() }), validation('email'))
    // A failed attempt does not consume the link.
    assert.equal((await admin.accept(url)).status, 200)
    assert.equal((await admin.signIn(email.toUpperCase())).status, 200)
  })

  test('a removed invitation or member loses access immediately', async () => {
    const { owner } = await openAccount(admin)
    const invite = () => admin.ask<{ id: string; url: string }>(owner, 'POST', '/members', { role: 'member' })
    const first = await invite()
    await admin.ask(owner, 'DELETE', `/members/${first.id}`)
    await assertProblem(await admin.accept(first.url), gone)
    const member = await admin.join((await invite()).url)
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
    const answer = await admin.send(second, 'DELETE', '/session')
    assert.equal(answer.status, 204)
    assert.match(String(answer.headers['set-cookie']), /^assay_session=; Max-Age=0; Path=\/admin; HttpOnly/)
    await assertSignedOut(second)
    await getSession(third)
    await admin.ask(third, 'DELETE', '/sessions')
    await assertSignedOut(third)
    await assertSignedOut(owner)
  })

  test('a new password ends the other sessions and replaces the old one', async () => {
    const { owner, email } = await openAccount(admin)
    const other = await admin.toVisitor(await admin.signIn(email))
    const next = 'a different long password'
    await assertProblem(
      await admin.send(owner, 'PUT', '/password', { body: { current: 'not this one', next } }),
      validation('current'),
    )
    await getSession(other)
    await admin.ask(owner, 'PUT', '/password', { current: goodPassword, next })
    await getSession(owner)
    await assertSignedOut(other)
    await assertProblem(await admin.signIn(email), signedOut)
    assert.equal((await admin.signIn(email, next)).status, 200)
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
    assert.equal((await findAudit('password.reset'))?.actor, email)
    const { code, err } = await runProgram(shared.settings, 'operators', 'reset', newEmail('no'))
    assert.equal(code, 1)
    assert.match(err, /There is no console user with the address/)
  })

  test('after five wrong passwords every attempt for the address must wait', async () => {
    const { email } = await openAccount(admin)
    const bystander = await openAccount(admin)
    for (let n = 0; n < 5; n++) await assertProblem(await admin.signIn(email, `wrong ${n}`), signedOut)
    for (const [address, password] of [
      [email, goodPassword],
      [email.toUpperCase(), goodPassword],
      [email, 'wrong'],
    ] as const) {
      const answer = await admin.signIn(address, password)
      await assertProblem(answer, { status: 429, kind: 'rate-limited' })
      const seconds = Number(answer.headers['retry-after'])
      assert(seconds >= 1 && seconds <= 5, `Retry-After: ${seconds}`)
    }
    assert.equal((await admin.signIn(bystander.email)).status, 200)
    // An unknown address behaves the same, so that it cannot be distinguished from a known one.
    const unknown = newEmail('unknown')
    const first = await admin.signIn(unknown)
    const known = await admin.signIn(bystander.email, 'wrong')
    const toProblem = (text: string) => ({ ...JSON.parse(text), traceId: '' })
    assert.deepEqual(toProblem(first.text), toProblem(known.text))
    for (let n = 0; n < 4; n++) await admin.signIn(unknown)
    assert.equal((await admin.signIn(unknown)).status, 429)
  })

  test('simultaneous guesses are limited like guesses in sequence', async () => {
    const { email } = await openAccount(admin)
    const answers = await Promise.all(Array.from({ length: 24 }, (_, n) => admin.signIn(email, `wrong ${n}`)))
    const checked = answers.filter(({ status }) => status === 401).length
    assert(checked <= 6, `${checked} of 24 guesses were checked`)
    assert(answers.every(({ status }) => status === 401 || status === 429))
  })

  test('with an authenticator app, each code works once, and removing the app needs the password', async () => {
    const { owner, email } = await openAccount(admin)
    const { secret, uri } = await admin.ask<{ secret: string; uri: string }>(owner, 'POST', '/totp')
    assert.equal(new URL(uri).searchParams.get('secret'), secret)
    // Sign-in needs no code before the first code is confirmed.
    assert.deepEqual(JSON.parse((await admin.signIn(email)).text), { state: 'signed-in' })
    const wrong = toCode(secret, 60)
    await assertProblem(await admin.send(owner, 'PUT', '/totp', { body: { code: wrong } }), validation('code'))
    const used = toCode(secret)
    await admin.ask(owner, 'PUT', '/totp', { code: used })
    assert.equal((await getSession(owner)).member.has_totp, true)
    assert.equal((await admin.send(owner, 'POST', '/totp')).status, 409)

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
    const { secret } = await admin.ask<{ secret: string }>(owner, 'POST', '/totp')
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
    const entry = await findAudit('totp.remove')
    assert.deepEqual([entry?.actor, entry?.target], ['command line', email])
  })

  test('members of a suspended account can sign in but not scan', async () => {
    const { owner, account } = await openAccount(admin)
    await admin.ask(admin.token, 'PATCH', `/operator/accounts/${account.id}`, { suspended: true })
    const view = await admin.ask<{ suspended_at: string | null }>(owner, 'GET', '/account')
    assert(view.suspended_at)
    const scan = await admin.send(owner, 'POST', '/scan/malware/scan/url', {
      body: { file_url: 'http://example.com/' },
    })
    assert.equal(scan.status, 401)
  })
})

/** The code of an authenticator app by RFC 6238, `stepsAhead` of now; independent of the implementation in the service. */
function toCode(secret: string, stepsAhead = 0): string {
  const bits = [...secret]
    .map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'))
    .join('')
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigInt64BE(BigInt(Math.floor(Date.now() / 30_000) + stepsAhead))
  const mac = createHmac('sha1', key).update(counter).digest()
  return String((mac.readUInt32BE((mac[19] ?? 0) & 15) & 0x7fff_ffff) % 1_000_000).padStart(6, '0')
}
