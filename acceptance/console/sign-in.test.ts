import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { lacksChromium, openChromium } from '../support/chromium.ts'
import { goodPassword, newEmail, openAccount, toCode, type Visitor } from '../support/console.ts'
import { listFindings, openWindow, setTheme, type Window } from '../support/console-page.ts'
import { lacksPrograms } from '../support/lacks-programs.ts'
import { alreadyTested } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'

const { admin, url } = getSharedService()

describe('signing in with a browser', { skip: alreadyTested || lacksChromium() }, () => {
  let browser: Browser
  let window: Window
  let page: Page
  let email: string
  let owner: Visitor
  let secret = ''
  let codes: string[] = []
  before(async () => {
    const account = await openAccount(admin, { name: 'Habits Ltd' })
    email = account.email
    owner = account.owner
    browser = await openChromium()
    window = await openWindow(browser, url)
    page = window.page
  })
  after(() => browser?.close())

  const press = (name: string | RegExp, place: Pick<Page, 'getByRole'> = page) =>
    place.getByRole('button', { name }).first().click()
  const dialog = () => page.getByRole('dialog')
  const shown = (heading: string) => page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
  const fillPassword = async (place: Pick<Page, 'getByLabel'> = page) => {
    await place.getByLabel('Email').fill(email)
    await place.getByLabel('Password').fill(goodPassword)
  }

  const assertGood = async (state: string) => assert.deepEqual(await listFindings(page), [], state)

  test('setting up an authenticator app shows its key as a QR code and as text', async () => {
    await window.open('/you')
    await fillPassword()
    await press('Sign in')
    await shown('You')
    await press('Set up')
    await dialog().getByLabel('Your password').fill(goodPassword)
    await press('Continue', dialog())
    await dialog()
      .getByRole('img', { name: /^QR code for your authenticator app/ })
      .waitFor()
    secret = (await dialog().locator('code').textContent()) ?? ''
    assert.match(secret, /^[A-Z2-7]{32}$/)
    await assertGood('the QR code')
  })

  test('a reader of QR codes finds the key, in both themes', { skip: lacksPrograms('zbarimg') }, async () => {
    const picture = dialog().getByRole('img', { name: /^QR code/ })
    for (const theme of ['light', 'dark'] as const) {
      await setTheme(page, theme)
      const { stdout } = spawnSync('zbarimg', ['--quiet', '--raw', '-'], { input: await picture.screenshot() })
      const read = new URL(stdout.toString().trim())
      assert.deepEqual(
        [read.protocol, read.host, read.pathname, read.searchParams.get('secret'), read.searchParams.get('issuer')],
        ['otpauth:', 'totp', `/Assay:${encodeURIComponent(email)}`, secret, 'Assay'],
      )
    }
  })

  test('the code of the app turns it on, and recovery codes are shown once, to copy and to download', async () => {
    await dialog().getByLabel('Code that the app shows').fill(toCode(secret))
    await press('Turn on', dialog())
    const list = dialog().getByRole('list', { name: 'Recovery codes' })
    await list.waitFor()
    codes = await list.getByRole('listitem').allTextContents()
    assert.equal(new Set(codes).size, 10)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      dialog().getByRole('link', { name: 'Download' }).click(),
    ])
    assert.equal(download.suggestedFilename(), 'assay-recovery-codes.txt')
    assert.equal(readFileSync(await download.path(), 'utf8'), `${codes.join('\n')}\n`)
    await assertGood('the recovery codes')
    await press('I have stored them', dialog())
    await page.getByText('10 recovery codes are left.').waitFor()
    await page.reload()
    await page.getByText('10 recovery codes are left.').waitFor()
    const content = await page.content()
    assert(!codes.some((code) => content.includes(code)))
    window.assertNoFaults()
  })

  test('a recovery code replaces the app, and another device can be signed out', async () => {
    const phone = await openWindow(browser, url, { viewport: { width: 390, height: 844 }, hasTouch: true })
    await phone.open('/you')
    await fillPassword(phone.page)
    const signIn = () => phone.page.getByRole('button', { name: 'Sign in' }).click()
    await signIn()
    await phone.page.getByLabel(/^Code from your authenticator app/).fill(codes[0] ?? '')
    await signIn()
    await phone.page.getByText('9 recovery codes are left.').waitFor()

    await page.reload()
    const devices = page.getByRole('region', { name: 'Your devices' })
    await devices.getByText('this device').waitFor()
    const before = await devices.getByRole('row').count()
    // The newest session is at the top: this window has just loaded the page, and the phone signed in before that.
    await press('Sign out', devices)
    await dialog()
      .getByText(/^This ends the session of Chrome on Linux at /)
      .waitFor()
    await press('Sign out', dialog())
    await dialog().waitFor({ state: 'detached' })
    await devices
      .getByRole('row')
      .nth(before - 1)
      .waitFor({ state: 'detached' })
    await assertGood('the devices')
    await phone.page.reload()
    await phone.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    await admin.ask(owner, 'GET', '/session')
    window.assertNoFaults()
    phone.assertNoFaults()
    await phone.close()
  })

  test('when the session ends, the form stays for the same person in the same account', async () => {
    const first = await openAccount(admin, { name: 'First Ltd' })
    const { invitation_url } = await admin.createAccount({
      name: 'Second Ltd',
      plan: 'standard',
      owner_email: first.email,
    })
    const both = await admin.join(invitation_url ?? '', first.email)
    const own = await openWindow(browser, url)
    page = own.page
    email = first.email
    await own.open('/keys')
    await fillPassword()
    await press('Sign in')
    await page.getByLabel('Account').selectOption({ label: 'Second Ltd' })
    await shown('Account')
    await page.getByRole('link', { name: 'API keys' }).click()
    await press('Create a key')
    await dialog().getByLabel('Name').fill('kept over the end')
    await admin.ask(both, 'DELETE', '/sessions')
    await press('Create', dialog())

    const ended = page.getByRole('dialog', { name: 'Your session has ended' })
    await ended.waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await assertGood('the end of a session')
    await ended.getByLabel('Password').fill('not this one at all')
    await press('Sign in', ended)
    await ended.getByText(/^Wrong email address/).waitFor()
    await ended.getByLabel('Password').fill(goodPassword)
    await press('Sign in', ended)
    await ended.waitFor({ state: 'detached' })
    await dialog().getByText('Your session had ended, so nothing was changed. Try again.').waitFor()
    assert.equal(await dialog().getByLabel('Name').inputValue(), 'kept over the end')
    await press('Create', dialog())
    const key = (await dialog().locator('code').first().textContent()) ?? ''
    const me = await fetch(`${url}/v1/me`, { headers: { 'x-api-key': key } })
    assert.equal(((await me.json()) as { plan: string }).plan, 'standard')
    own.assertNoFaults()
    await own.close()
  })

  test('when another person signs in after the end of a session, the form is dropped', async () => {
    const [one, other] = [
      await openAccount(admin, { name: 'One Ltd' }),
      await openAccount(admin, { name: 'Other Ltd' }),
    ]
    const own = await openWindow(browser, url)
    page = own.page
    email = one.email
    await own.open('/keys')
    await fillPassword()
    await press('Sign in')
    await press('Create a key')
    await dialog().getByLabel('Name').fill('for one only')
    await admin.ask(one.owner, 'DELETE', '/sessions')
    await press('Create', dialog())
    const ended = page.getByRole('dialog', { name: 'Your session has ended' })
    email = other.email
    await fillPassword(ended)
    await press('Sign in', ended)
    await shown('Overview')
    await page.getByText(other.email).waitFor()
    assert.equal(await dialog().count(), 0)
    await own.open('/keys')
    await press('Create a key')
    assert.equal(await dialog().getByLabel('Name').inputValue(), '')
    own.assertNoFaults()
    await own.close()
  })

  test('a person who guessed too often reads how long to wait and what to do', async () => {
    // A network of its own, so that these guesses delay no other test.
    const own = await openWindow(browser, url, { extraHTTPHeaders: { 'x-forwarded-for': '2001:db8:77::1' } })
    page = own.page
    await own.open('/sign-in')
    await page.getByLabel('Email').fill(newEmail('nobody'))
    await page.getByLabel('Password').fill('not this one at all')
    const paused = page.getByText(/^Too many wrong passwords or codes .* Wait \d+ seconds?, .* ask an operator/)
    for (let n = 0; n < 12 && !(await paused.isVisible()); n++) {
      const answered = page.waitForResponse((response) => response.request().method() === 'POST')
      await press('Sign in')
      await answered
      await page.getByRole('alert').waitFor()
    }
    await paused.waitFor()
    await assertGood('the pause')
    await page.getByText('You can try again now.').waitFor()
    own.assertNoFaults()
    await own.close()
  })
})
