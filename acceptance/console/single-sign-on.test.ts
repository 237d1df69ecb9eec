import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { lacksChromium, openChromium } from '../support/chromium.ts'
import { type Admin, goodPassword, makeAdmin, newEmail, nobody, type Visitor } from '../support/console.ts'
import { listFindings, openWindow, type Window } from '../support/console-page.ts'
import { dataRoot } from '../support/data-root.ts'
import { findFreePort } from '../support/free-port.ts'
import type { Answer } from '../support/http.ts'
import { clientId, clientSecret, type Issuer, openIssuer } from '../support/issuer.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { assertProblem } from '../support/problems.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested } from '../support/scanning.ts'
import { type Service, startService } from '../support/start-service.ts'

const adminToken = 'operator token of this test, long'.replaceAll(' ', '-')
const forbidden = { status: 403, kind: 'forbidden' as const }
const conflict = { status: 409, kind: 'conflict' as const }

type Session = {
  member: { id: string; email: string; name: string; role: string; has_sso: boolean }
  accounts: { id: string; role: string }[]
  sso_sign_out_url: string | null
}
type AuditPage = { items: { actor: string; action: string; detail: string | null }[] }

describe('single sign-on', { skip: alreadyTested }, () => {
  const dataDir = mkdtempSync(join(dataRoot, 'assay-sso-'))
  let issuer: Issuer
  let service: Service
  let admin: Admin
  let accountId: string
  let settings: NodeJS.ProcessEnv
  const withoutIssuer: Answer[] = []
  before(async () => {
    const port = await findFreePort()
    const url = `http://127.0.0.1:${port}`
    issuer = await openIssuer(url)
    copyPreparedDatabase(dataDir)
    settings = {
      ASSAY_DATA_DIR: dataDir,
      ASSAY_PORT: String(port),
      ASSAY_PUBLIC_URL: url,
      ASSAY_ADMIN_TOKEN: adminToken,
      ASSAY_SSO_CLIENT_ID: clientId,
      ASSAY_SSO_CLIENT_SECRET: clientSecret,
    }
    admin = makeAdmin(url, adminToken)
    accountId = await startWithoutIssuer()
    service = await start({
      ASSAY_SSO_ISSUER: issuer.url,
      ASSAY_SSO_DOMAINS: 'example.com',
      ASSAY_SSO_ROLES: `admins=operator,staff=member:${accountId},leads=owner:${accountId}`,
      ASSAY_SSO_CREATE: 'on',
    })
  })
  after(async () => {
    await service?.stop()
    await issuer?.close()
    rmSync(dataDir, { recursive: true, force: true })
  })

  const start = (more: NodeJS.ProcessEnv) => {
    settings = { ...settings, ...more }
    return startService(settings, 'kept', { options: ['--test'] })
  }

  /** Starts the service while no issuer answers, to see what it says, and creates the account that rules can name. */
  async function startWithoutIssuer(): Promise<string> {
    const ssoIssuer = `http://127.0.0.1:${await findFreePort()}`
    const alone = await start({ ASSAY_SSO_ISSUER: ssoIssuer, ASSAY_SSO_REQUIRED: 'on' })
    const created = await admin.createAccount({ name: 'Staff Ltd' })
    withoutIssuer.push(
      await admin.send(nobody, 'GET', '/sso'),
      await admin.send(nobody, 'POST', '/sso'),
      await admin.signIn(newEmail()),
      await acceptOwnInvitation(),
    )
    await alone.stop()
    settings.ASSAY_SSO_REQUIRED = 'off'
    return created.account.id
  }

  /** Lets an owner invite themselves, and accept with their password. */
  async function acceptOwnInvitation(): Promise<Answer> {
    const { email, visitor } = await addMember()
    const { url } = await admin.ask<{ url: string }>(visitor, 'POST', '/members', { role: 'owner', email })
    return admin.accept(url, { email })
  }

  /** Adds a person to the issuer, and returns their name there. */
  function addPerson(login: string, claims: object = {}): { login: string; email: string } {
    const email = newEmail(login)
    issuer.people.set(login, { email, email_verified: true, name: `Person ${login}`, groups: ['staff'], ...claims })
    return { login, email }
  }

  /** Begins a sign-in: the cookie of the browser, and the page of the issuer. */
  async function begin(who: Visitor = nobody, path = '/sso', body?: object) {
    const answer = await admin.send(who, 'POST', path, body === undefined ? {} : { body })
    assert.equal(answer.status, 200, answer.text)
    const set = answer.headers['set-cookie']?.[0] ?? ''
    assert.match(set, /^assay_sso=[\w-]{43}; Max-Age=600; Path=\/admin; HttpOnly; SameSite=Strict$/)
    return { cookie: set.split(';', 1)[0] ?? '', url: (JSON.parse(answer.text) as { url: string }).url }
  }
  const finish = (cookie: string, answer: Record<string, string>) =>
    admin.send({ cookie }, 'POST', '/sso/finish', { body: answer })
  /** The whole way of a browser. */
  async function signIn(login: string): Promise<Answer> {
    const { cookie, url } = await begin()
    return finish(cookie, await issuer.signIn(url, login))
  }
  /** The visitor of the session that a sign-in opened. */
  async function toVisitor(answer: Answer): Promise<Visitor> {
    assert.equal(answer.status, 200, answer.text)
    const set = answer.headers['set-cookie']?.find((one) => one.startsWith('assay_session=')) ?? ''
    return admin.toVisitor({ ...answer, headers: { 'set-cookie': [set] } })
  }
  const getSession = (who: Visitor) => admin.ask<Session>(who, 'GET', '/session')
  /** Actions in the audit log that concern a person, newest first. */
  async function listActions(email: string): Promise<string[]> {
    const { items } = await admin.ask<AuditPage>(admin.token, 'GET', '/operator/audit?limit=100')
    return items.filter(({ actor }) => actor === email).map(({ action, detail }) => `${action} ${detail ?? ''}`.trim())
  }
  /** A member with a password, and without single sign-on. */
  async function addMember() {
    const email = newEmail('local')
    const { invitation_url } = await admin.createAccount({ owner_email: email })
    return { email, visitor: await admin.join(invitation_url ?? '', email) }
  }

  test('a person of an allowed domain with a mapped role gets access, and the same one the next time', async () => {
    const { login, email } = addPerson('ada')
    const { url } = await begin()
    const page = new URL(url)
    assert.equal(page.origin, issuer.url)
    assert.deepEqual(
      ['response_type', 'code_challenge_method', 'redirect_uri', 'scope'].map((name) => page.searchParams.get(name)),
      ['code', 'S256', `${service.url}/console/sso`, 'openid email profile'],
    )
    assert(page.searchParams.get('state') && page.searchParams.get('nonce') && page.searchParams.get('code_challenge'))
    const first = await getSession(await toVisitor(await signIn(login)))
    assert.deepEqual(
      [first.member.email, first.member.name, first.member.role, first.member.has_sso, first.accounts],
      [email, 'Person ada', 'member', true, [{ id: accountId, name: 'Staff Ltd', role: 'member' }]],
    )
    const again = await getSession(await toVisitor(await signIn(login)))
    assert.equal(again.member.id, first.member.id)
    const end = new URL(first.sso_sign_out_url ?? '')
    assert.deepEqual(
      [end.origin, end.searchParams.get('post_logout_redirect_uri')],
      [issuer.url, `${service.url}/console/sign-in`],
    )
    assert.deepEqual(await listActions(email), [
      'session.open single sign-on',
      'session.open single sign-on',
      `member.roles +member ${accountId}`,
      `sso.link ${email} at ${issuer.url}`,
      'member.create single sign-on',
    ])
  })

  test('roles follow the issuer, and a person who has none left is refused', async () => {
    const { login, email } = addPerson('roles', { groups: ['admins', 'staff'] })
    const change = (groups: unknown) => issuer.people.set(login, { ...issuer.people.get(login), groups })
    const operator = await toVisitor(await signIn(login))
    assert.equal((await getSession(operator)).member.role, 'operator')
    await admin.ask(operator, 'GET', '/operator/plans')
    change(['leads'])
    const lead = await getSession(await toVisitor(await signIn(login)))
    assert.deepEqual([lead.member.role, lead.accounts.map(({ role }) => role)], ['owner', ['owner']])
    // A role that is taken away ends the sessions that worked with it.
    assert.equal((await admin.send(operator, 'GET', '/operator/plans')).status, 401)
    for (const groups of [['nobody'], 'adminsx', [['admins']], { admins: true }, undefined]) {
      change(groups)
      await assertProblem(await signIn(login), forbidden, JSON.stringify(groups))
    }
    change('staff')
    assert.equal((await getSession(await toVisitor(await signIn(login)))).member.role, 'member')
    assert((await listActions(email)).includes('session.refused single sign-on: no role is left'))
  })

  test('an answer counts once, and only in the browser that began the sign-in', async () => {
    const { login } = addPerson('eve')
    const { cookie, url } = await begin()
    const answer = await issuer.signIn(url, login)
    const other = await begin()
    await assertProblem(await finish('', answer), forbidden, 'no cookie')
    await assertProblem(await finish(other.cookie, answer), forbidden, 'the cookie of another browser')
    await assertProblem(await finish(other.cookie, answer), forbidden, 'a used cookie')
    assert.equal((await finish(cookie, answer)).status, 200)
    await assertProblem(await finish(cookie, answer), forbidden, 'the same answer again')
    for (const state of ['x', `${answer.state}x`, answer.state?.toUpperCase() ?? '']) {
      const { cookie: own, url: page } = await begin()
      await assertProblem(await finish(own, { ...(await issuer.signIn(page, login)), state }), forbidden, state)
    }
  })

  test('a code that was used, or belongs to another sign-in, opens no session', async () => {
    const { login } = addPerson('code')
    const first = await begin()
    const used = await issuer.signIn(first.url, login)
    assert.equal((await finish(first.cookie, used)).status, 200)
    const second = await begin()
    const fresh = await issuer.signIn(second.url, login)
    await assertProblem(await finish(second.cookie, { ...fresh, code: used.code ?? '' }), forbidden, 'a used code')
    const third = await begin()
    const own = await issuer.signIn(third.url, login)
    // The code was never used, but another browser began its sign-in: PKCE refuses it.
    await assertProblem(await finish(third.cookie, { ...own, code: fresh.code ?? '' }), forbidden, 'a stolen code')
    const fourth = await begin()
    const { code: _, ...rest } = await issuer.signIn(fourth.url, login)
    await assertProblem(await finish(fourth.cookie, { ...rest, error: 'access_denied' }), forbidden, 'an error')
  })

  test('an answer in the name of another issuer is refused', async () => {
    const { login } = addPerson('mixup')
    for (const iss of ['https://login.example.org', `${issuer.url}/`, undefined]) {
      const { cookie, url } = await begin()
      const { iss: _, ...answer } = await issuer.signIn(url, login)
      await assertProblem(await finish(cookie, iss === undefined ? answer : { ...answer, iss }), forbidden, iss)
    }
  })

  test('only verified addresses of the allowed domains are let in', async () => {
    const wrong: object[] = [
      { email_verified: false },
      { email_verified: undefined },
      { email_verified: 'true' },
      { email: undefined },
      { email: 'mallory@example.org' },
      { email: 'mallory@sub.example.com' },
      { email: 'mallory@example.com.example.org' },
      { email: 'a@example.com@example.org' },
      { email: 'mallory@example.org, ada@example.com' },
      { email: ['ada@example.com'] },
    ]
    for (const [index, claims] of wrong.entries()) {
      const { login } = addPerson(`wrong${index}`, claims)
      await assertProblem(await signIn(login), forbidden, JSON.stringify(claims))
    }
    const { login } = addPerson('capitals', { email: 'Capitals@EXAMPLE.com' })
    assert.equal((await signIn(login)).status, 200)
  })

  test('a member with the same address is not taken over, and can connect themselves', async () => {
    const { email, visitor } = await addMember()
    const { login } = addPerson('twin', { email: email.toUpperCase(), groups: ['leads'] })
    const refused = await signIn(login)
    await assertProblem(refused, forbidden)
    assert.match(refused.text, /You have a password for this service already/)
    assert.equal((await getSession(visitor)).member.has_sso, false)

    const link = (body: object) => begin(visitor, '/sso/link', body)
    const wrong = await admin.send(visitor, 'POST', '/sso/link', { body: { password: 'not this one' } })
    await assertProblem(wrong, { status: 422, kind: 'validation', errors: ['password'] })
    // The answer of a connection counts only together with the session that began it.
    const stolen = await link({ password: goodPassword })
    await assertProblem(await finish(stolen.cookie, await issuer.signIn(stolen.url, login)), forbidden)
    const own = await link({ password: goodPassword })
    const answer = await issuer.signIn(own.url, login)
    const linked = await finish(`${own.cookie}; ${visitor.cookie}`, answer)
    assert.deepEqual([linked.status, linked.text], [200, '{"state":"linked"}'])
    const session = await getSession(await toVisitor(await signIn(login)))
    // The account of the member stays, and the role of the mapping is added.
    assert.deepEqual([session.member.email, session.accounts.length], [email, 2])
    assert.equal((await admin.signIn(email)).status, 200, 'the password still works')

    const other = await addMember()
    const again = await begin(other.visitor, '/sso/link', { password: goodPassword })
    const taken = await finish(`${again.cookie}; ${other.visitor.cookie}`, await issuer.signIn(again.url, login))
    await assertProblem(taken, conflict)

    const last = await admin.send(visitor, 'DELETE', '/sso/link', { body: { password: goodPassword } })
    await assertProblem(last, conflict, 'the last owner')
    assert.equal((await signIn(addPerson('lead', { groups: ['leads'] }).login)).status, 200)
    await admin.ask(visitor, 'DELETE', '/sso/link', { password: goodPassword })
    const after = await getSession(visitor)
    assert.deepEqual([after.member.has_sso, after.accounts.length], [false, 1])
    await assertProblem(await signIn(login), forbidden)
  })

  test('a suspended person is refused', async () => {
    // The last operator cannot be suspended.
    assert.equal((await signIn(addPerson('other', { groups: ['admins'] }).login)).status, 200)
    const { login } = addPerson('suspended', { groups: ['admins'] })
    const { member } = await getSession(await toVisitor(await signIn(login)))
    await admin.ask(admin.token, 'POST', `/operator/operators/${member.id}/suspend`, { suspended: true })
    await assertProblem(await signIn(login), forbidden)
  })

  test('the service starts without the issuer, and says so', async () => {
    const [state, begun, password, invitation] = withoutIssuer
    assert(state && begun && password && invitation)
    assert.deepEqual(JSON.parse(state.text), { state: 'unreachable', is_required: true })
    await assertProblem(begun, { status: 503, kind: 'overloaded' })
    assert.match(begun.text, /the provider does not answer/)
    await assertProblem(password, forbidden)
    assert.match(password.text, /requires single sign-on/)
    await assertProblem(invitation, forbidden)
    assert.match(invitation.text, /cannot accept an invitation with a password/)
    const now = await admin.ask(nobody, 'GET', '/sso')
    assert.deepEqual(now, { state: 'available', is_required: false })
  })

  test('doctor asks the issuer, and finds rules for accounts that do not exist', async () => {
    type Finding = { check: string; ok: boolean; says: string }
    const examine = async (more: NodeJS.ProcessEnv) => {
      const { out } = await runProgram({ ...settings, ...more }, 'doctor', '--json')
      const { findings } = JSON.parse(out) as { findings: Finding[] }
      return findings.filter(({ check }) => check.startsWith('single sign-on'))
    }
    assert.deepEqual(await examine({}), [{ check: 'single sign-on', ok: true, says: `${issuer.url} answers` }])
    const unknown = randomUUID()
    const [gone, roles] = await examine({
      ASSAY_SSO_ISSUER: `http://127.0.0.1:${await findFreePort()}`,
      ASSAY_SSO_ROLES: `staff=member:${unknown}`,
    })
    assert.equal(gone?.ok, false)
    assert.match(gone?.says ?? '', /cannot be used: The host refused the connection\. Check ASSAY_SSO_ISSUER/)
    assert.deepEqual([roles?.ok, roles?.says.includes(unknown)], [false, true])
  })

  describe('in a browser', { skip: lacksChromium() }, () => {
    let browser: Browser
    let window: Window
    let page: Page
    before(async () => {
      browser = await openChromium()
      window = await openWindow(browser, service.url, {}, [issuer.url, fonts])
      page = window.page
      await page.context().route(`${fonts}/**`, (route) => route.abort())
    })
    after(() => browser?.close())

    const shown = (heading: string) => page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
    const press = (name: string, place: Pick<Page, 'getByRole'> = page) =>
      place.getByRole('button', { name, exact: true }).click()
    const assertGood = async (state: string) => assert.deepEqual(await listFindings(page), [], state)
    /** The pages for development that oidc-provider brings take any password, and have no labels but placeholders. */
    async function fillIssuerPages(login: string) {
      await page.getByPlaceholder('Enter any login').fill(login)
      await page.getByPlaceholder('and password').fill('x')
      await press('Sign-in')
      await press('Continue')
    }

    test('a person comes back to the page that they opened', async () => {
      const { login, email } = addPerson('browser')
      await window.open('/keys')
      await page.getByText('or with your password').waitFor()
      await assertGood('the sign-in page')
      await press('Sign in with single sign-on')
      await fillIssuerPages(login)
      await shown('API keys')
      assert.equal(new URL(page.url()).pathname, '/console/keys')
      await page.getByText(email).waitFor()
      window.assertNoFaults()
    })

    test('when the session ends, single sign-on in another window keeps the form', async () => {
      await press('Create a key')
      await page.getByRole('dialog').getByLabel('Name').fill('kept over the end')
      const cookie = (await page.context().cookies(`${service.url}/admin`)).map(({ name, value }) => `${name}=${value}`)
      const who = { cookie: cookie.join('; ') }
      const { csrf_token } = await admin.ask<{ csrf_token: string }>(who, 'GET', '/session')
      await admin.ask({ ...who, 'x-csrf-token': csrf_token }, 'DELETE', '/sessions')
      await press('Create', page.getByRole('dialog'))
      const ended = page.getByRole('dialog', { name: 'Your session has ended' })
      await ended.getByText('or with your password').waitFor()
      assert.equal(await page.evaluate('document.activeElement.type'), 'password')
      await assertGood('the end of a session')
      const openPopup = async () => {
        const [opened] = await Promise.all([page.waitForEvent('popup'), press('Sign in with single sign-on', ended)])
        return opened
      }
      // The first window stays at the pages of the issuer, which does not know the person there.
      const known = (await page.context().cookies(issuer.url)).filter(({ name }) => !name.startsWith('assay'))
      for (const { name } of known) await page.context().clearCookies({ name })
      const left = await openPopup()
      await left.getByPlaceholder('Enter any login').waitFor()
      await page.context().addCookies(known)
      // The issuer knows the person again, and sends the second window back at once.
      const opened = await openPopup()
      if (!opened.isClosed()) await opened.waitForEvent('close')
      await left.close()
      await ended.waitFor({ state: 'detached' })
      assert.equal(await page.getByRole('dialog').getByLabel('Name').inputValue(), 'kept over the end')
      await press('Create', page.getByRole('dialog'))
      await press('I have copied it', page.getByRole('dialog'))
      window.assertNoFaults()
    })

    test('the page You shows the connection, and signing out ends the session of the issuer too', async () => {
      await window.open('/you')
      await page.getByText('connected', { exact: true }).waitFor()
      await assertGood('the page You')
      await press('Sign out')
      await press('Yes, sign me out')
      await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
      assert.equal(new URL(page.url()).pathname, '/console/sign-in')
      window.assertNoFaults()
    })

    test('a member with a password connects on the page You', async () => {
      const { email } = await addMember()
      const { login } = addPerson('connects', { email })
      await window.open('/you')
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill(goodPassword)
      await press('Sign in')
      await page.getByText('not connected', { exact: true }).waitFor()
      await press('Connect')
      await page.getByRole('dialog').getByLabel('Your password').fill(goodPassword)
      await press('Continue', page.getByRole('dialog'))
      await fillIssuerPages(login)
      await page.getByText('connected', { exact: true }).waitFor()
      assert.equal(new URL(page.url()).pathname, '/console/you')
      await press('Sign out', page.getByRole('complementary', { name: 'Menu' }))
      await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
      window.assertNoFaults()
    })

    test('while the issuer is down the page says so, and shows the password only where it is accepted', async () => {
      for (const is_required of [false, true]) {
        const answer = { json: { state: 'unreachable', is_required } }
        await page.route('**/admin/v1/sso', (route) => route.fulfill(answer))
        await page.reload()
        await page.getByText('Single sign-on is not available at the moment').waitFor()
        await assertGood(`without the issuer, ${is_required}`)
        assert.equal(await page.getByLabel('Password').count(), is_required ? 0 : 1)
        await page.unroute('**/admin/v1/sso')
      }
      await page.reload()
      window.assertNoFaults()
    })

    test('a person who is refused reads why, and the code does not stay in the address', async () => {
      const { login } = addPerson('refused', { email_verified: false })
      // The issuer still knows the person of the test before.
      await page.context().clearCookies({ domain: new URL(issuer.url).hostname })
      await press('Sign in with single sign-on')
      await fillIssuerPages(login)
      await page.getByText('Your provider has not verified your email address.').waitFor()
      assert.equal(new URL(page.url()).search, '')
      await assertGood('a refused sign-in')
      await page.getByRole('link', { name: 'Back to the sign-in page' }).click()
      await shown('Sign in')
      window.assertNoFaults()
    })
  })
})

/** The sign-in pages of oidc-provider ask for a font. */
const fonts = 'https://fonts.googleapis.com'
