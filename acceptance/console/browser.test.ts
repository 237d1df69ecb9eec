import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openTestDatabase } from '../../packages/server/test/support/test-database.ts'
import { eicar, eicarSignal, newZip } from '../support/archives.ts'
import { lacksChromium, openChromium } from '../support/chromium.ts'
import { goodPassword, newEmail } from '../support/console.ts'
import {
  accountPages,
  listHiddenActions,
  listSerious,
  measureOverflow,
  openWindow,
  operatorPages,
  readTheme,
  setTheme,
  type Window,
} from '../support/console-page.ts'
import { images } from '../support/forms.ts'
import { world } from '../support/origin.ts'
import { openReceiver, type Receiver, verifyDelivery } from '../support/receiver.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { type Service, startService } from '../support/start-service.ts'
import { makeCaller } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const lacking = alreadyTested || (await lacksClamAv(getSharedService().url)) || lacksChromium()
const pages = Object.entries({ ...accountPages, ...operatorPages })
const email = newEmail('first')
/** A file name with markup, and characters that reverse and hide text. Many pages show it. */
const evilName = '<img src=x onerror="document.title=1"><script>document.title=2</script>\u202egnp.\u200bexe'
const evilNameShown = evilName.replace('\u202e', '<U+202E>').replace('\u200b', '<U+200B>')

/** An engine that calls everything clean, so that it disagrees with ClamAV about EICAR. */
const trustingEngine = `[[engines]]
name = "trusting"
kind = "command"
program = "/usr/bin/true"
args = ["{file}"]
required = false
`

describe('the console in a browser', { skip: lacking }, () => {
  let dir = ''
  let service: Service
  let receiver: Receiver
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let browser: Browser
  let window: Window
  let page: Page
  before(async () => {
    receiver = await openReceiver()
    database = await openTestDatabase()
    dir = mkdtempSync(join(tmpdir(), 'assay-browser-'))
    const config = join(dir, 'assay.toml')
    writeFileSync(config, trustingEngine)
    service = await startService({
      ASSAY_DATABASE_URL: database.url,
      ASSAY_OUTBOUND_ALLOW: world,
      ASSAY_CONFIG: config,
    })
    browser = await openChromium()
    window = await openWindow(browser, service.url)
    page = window.page
  })
  after(async () => {
    await browser?.close()
    await service?.stop()
    await database?.drop()
    await receiver?.close()
    rmSync(dir, { recursive: true, force: true })
  })

  const press = (name: string | RegExp, place: Pick<Page, 'getByRole'> = page) =>
    place.getByRole('button', { name }).first().click()
  const dialog = () => page.getByRole('dialog')
  const shown = (heading: string) => page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()

  /** Follows the link to a page if this page has it: a load of the console, and of axe into it, takes a second. */
  const follow = async (path: string) => {
    const link = page.locator(`a[href="/console${path}"]:visible`).first()
    if ((await link.count()) > 0) await link.click()
    else await window.open(path)
  }

  test('the reference sends no test header unless a person chooses one', async () => {
    // Drawing the transitions of this long page takes half a second of processor time.
    const reference = await browser.newPage({ reducedMotion: 'reduce' })
    // On a busy machine the reference takes longer than the 30 s that are usual.
    reference.setDefaultTimeout(120_000)
    await reference.goto(`${service.url}/reference`)
    // Playwright computes roles again and again, which takes seconds on this page: the text finds the button as well.
    await reference.locator('button', { hasText: 'Test Request' }).first().click()
    const isIncluded = async (name: string) => {
      const box = reference.getByLabel(`Include ${name} in request`)
      await box.waitFor({ state: 'attached' })
      return box.isChecked()
    }
    assert.deepEqual([await isIncluded('wait'), await isIncluded('X-Assay-Test')], [true, false])
    await reference.close()
  })

  test('the first page is small, has a strict content security policy, and loads nothing from other hosts', async () => {
    const answer = await fetch(`${service.url}/console`, { redirect: 'manual' })
    const policy = answer.headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';/)
    assert(!policy.includes('unsafe'))
    assert.equal(answer.headers.get('x-frame-options'), 'DENY')
    let bytes = 0
    const first = await openWindow(browser, service.url)
    first.page.on('response', async (response) => {
      if (response.request().resourceType() !== 'script') return
      bytes += Number(response.headers()['content-length'] ?? Number.NaN)
    })
    await first.open('/')
    await first.page.getByRole('button', { name: 'Sign in' }).waitFor()
    await first.page.waitForLoadState('networkidle')
    assert(bytes > 20_000 && bytes < 200_000, `${bytes} bytes of script`)
    first.assertNoFaults()
    await first.close()
  })

  test('the link of the first start leads to a verdict on EICAR', async () => {
    await page.goto(service.consoleLink)
    await shown('Welcome to Assay')
    await press('Start')
    await page.getByText('Enter at least 12 characters.').waitFor()
    await page.getByLabel('Your name').fill('Ada Lovelace')
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(goodPassword)
    await press('Start')
    await shown('Overview')
    await page.getByText('Get started').waitFor()

    await page.getByRole('link', { name: 'Scan', exact: true }).click()
    await shown('Scan')
    await press('EICAR test file')
    const result = page.getByRole('article', { name: 'Result' })
    await result.getByText(eicarSignal, { exact: true }).waitFor()
    await result.getByText(/^\W?threat$/).waitFor()
    window.assertNoFaults()
  })

  test('a false positive can be allowed from its result, and the next scan is clean', async () => {
    const content = newZip([{ name: randomUUID(), data: eicar }])
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'ours.zip', mimeType: 'application/zip', buffer: content })
    await press('Scan')
    const result = page.getByRole('article', { name: 'Result' })
    await result.getByRole('heading', { name: 'ours.zip' }).waitFor()
    await result.getByText(eicarSignal, { exact: true }).waitFor()
    await press(/^False positive/)
    await press('Allow', dialog())
    await press('Scan again')
    await result.getByText(/^\W?clean$/).waitFor()
    const verdict = await makeCaller(service.url, service.apiKey).sendFile('malware', 'scan', content)
    assert.equal(JSON.parse(verdict.text).status, 'clean')
    window.assertNoFaults()
  })

  test('a file that is too large to wait for can be scanned in the background, without the result before', async () => {
    await window.open('/scan')
    await press('EICAR test file')
    const result = page.getByRole('article', { name: 'Result' })
    await result.getByText(eicarSignal, { exact: true }).waitFor()
    await page.getByText('NSFW content', { exact: true }).click()
    // The browser reads a file by its path. Content would pass through the protocol of the test as base64.
    const large = join(dir, 'large.png')
    writeFileSync(large, Buffer.concat([images['one.png'], Buffer.alloc(9 * 2 ** 20)]))
    await page.locator('input[type=file]').setInputFiles(large)
    await press(/^Scan$/)
    await page.getByText('The file has 9.0 MB; this mode accepts up to 8.0 MB.').waitFor()
    assert.equal(await result.count(), 0, 'the verdict of another file')
    await press('Scan in the background instead')
    await result.getByRole('heading', { name: 'large.png' }).waitFor()
    window.assertNoFaults()
  })

  test('a key created in the browser works and is shown once', async () => {
    await follow('/keys')
    await press('Create a key')
    await dialog().getByLabel('Name').fill('<b>build</b>')
    await press('Create', dialog())
    const key = (await dialog().locator('code').first().textContent()) ?? ''
    const me = await fetch(`${service.url}/v1/me`, { headers: { 'x-api-key': key } })
    assert.equal(me.status, 200, key)
    await press('I have copied it', dialog())
    await page.getByText('<b>build</b>').waitFor()
    assert(!(await page.content()).includes(key))
    const scan = await makeCaller(service.url, key).sendFile('malware', 'scan', eicar, { file_name: evilName })
    assert.equal(scan.status, 201)
    window.assertNoFaults()
  })

  test('download credentials are added without being shown again, and removed', async () => {
    await follow('/account')
    await page.getByText('No download credentials').waitFor()
    // The plan moves the buttons below it when it arrives: a click at that moment ends beside its button.
    await page.getByText('Loading…').first().waitFor({ state: 'detached' })
    await press('Add headers for a host')
    await dialog().getByLabel('Host').fill('*.com')
    await dialog().getByLabel('Value').fill('Bearer sw0rdfish')
    await press(/^Add$/, dialog())
    await dialog().getByText('belong to different people').waitFor()
    await dialog().getByLabel('Host').fill('Files.example.com')
    await press(/^Add$/, dialog())
    await dialog().waitFor({ state: 'detached' })
    await page.getByText('https://files.example.com').waitFor()
    await press('Add an S3 key')
    for (const [label, value] of [
      ['Bucket', 'invoices'],
      ['Region', 'eu-central-1'],
      ['Access key ID', 'AKIASW0RDFISH'],
      ['Secret access key', 'sw0rdfish'],
    ] as const) {
      await dialog().getByLabel(label).fill(value)
    }
    await press(/^Add$/, dialog())
    await dialog().waitFor({ state: 'detached' })
    await page.getByText('s3://invoices').waitFor()
    assert.doesNotMatch(await page.content(), /sw0rdfish/i)
    await press('Remove https://files.example.com')
    await press(/^Remove$/, dialog())
    await dialog().waitFor({ state: 'detached' })
    await page.getByText('https://files.example.com', { exact: true }).waitFor({ state: 'detached' })
    window.assertNoFaults()
  })

  test('a webhook is delivered, listed, and replayed', async () => {
    await follow('/scan')
    await page.getByText('In the background').click()
    await page.getByLabel(/^Callback URL/).fill(`${receiver.url}/hook`)
    await press('EICAR test file')
    await page.getByRole('article', { name: 'Result' }).getByText(eicarSignal, { exact: true }).waitFor()
    await waitUntil('the webhook', () => receiver.at('/hook').length === 1)
    const [first] = receiver.at('/hook')
    assert(first)
    assert.equal(verifyDelivery(first, service.webhookSecret).status, 'threat')

    await follow('/webhooks')
    await page.getByRole('button', { name: `${receiver.url}/hook` }).click()
    await press('Replay', dialog())
    await waitUntil('the replay', () => receiver.at('/hook').length === 2)
    assert.equal(receiver.at('/hook')[1]?.headers['webhook-id'], first.headers['webhook-id'])
    window.assertNoFaults()
  })

  test('an operator grants credits', async () => {
    const account = (await service.operate('accounts', 'create', '--name', 'Poor Ltd', '--credits', '0')) as {
      api_key: string
    }
    const caller = makeCaller(service.url, account.api_key)
    assert.equal((await caller.sendFile('malware', 'scan', 'one')).status, 403)
    await window.open('/operator/accounts')
    await page.getByRole('button', { name: 'Poor Ltd' }).click()
    await dialog().getByLabel('Credits').fill('25')
    await dialog().getByLabel('Reason').fill('to get going')
    await press('Grant', dialog())
    await dialog().getByText('grant: to get going').waitFor()
    assert.equal((await caller.sendFile('malware', 'scan', 'one')).status, 201)
    window.assertNoFaults()
  })

  test('charts of the service and of the account show real scans, as bars and as a table', async () => {
    // The page of the test before shows a dialog.
    await window.open('/operator/status')
    for (const path of ['/operator/status', '/usage']) {
      await follow(path)
      const chart = page.getByRole('img', { name: /^Malware scans, per minute, from .* Highest value: [1-9]/ })
      await chart.waitFor()
      assert((await chart.locator('rect.fill-threat').count()) > 0, path)
      await page.getByText('Show as table: Malware scans').click()
      const table = page.getByRole('table', { name: 'Malware scans, per minute' })
      await table.waitFor()
      const sum = async (column: number) => {
        const cells = await table.locator(`tbody td:nth-child(${column})`).allTextContents()
        assert.equal(cells.length, 60)
        return cells.reduce((all, cell) => all + Number(cell), 0)
      }
      const sums = [await sum(2), await sum(3), await sum(4)] as const
      // Two from the console and one with a key; the allowed archive is clean.
      assert(sums[0] >= 2 && sums[1] >= 3 && sums[2] === 0, `${path}: ${sums}`)
      await press('Last day')
      await page.getByRole('img', { name: /^Malware scans, per 15 minutes, .* Highest value: [1-9]/ }).waitFor()
      await page.getByRole('img', { name: /^Time to verdict|^Scan response time/ }).waitFor()
    }
    await follow('/operator/status')
    for (const name of [
      /^Memory without engines, MB, .* [1-9]\d+\.?\d*\.$/,
      /^Webhook attempts, .* [1-9]/,
      /^Engine time, /,
    ])
      await page.getByRole('img', { name }).waitFor()
    window.assertNoFaults()
  })

  test('the status page shows external engines, and the content about which engines disagreed', async () => {
    const table = page.getByRole('table', { name: 'External engines' })
    const cells = await table.locator('tbody tr').first().locator('th, td').allTextContents()
    const [name, state, kind, failure, , scans, failures, p50, p99] = cells
    assert.deepEqual([name, state, kind, failure, failures], ['trusting', '✓ answers', 'command', 'It is noted', '0'])
    assert.ok(Number(scans) >= 3, scans)
    for (const time of [p50, p99]) assert.match(time ?? '', /^[\d,.]+ ms$/)
    const disagreements = page.getByRole('table', { name: 'Disagreements between engines' })
    const [, , verdict, found, clean] = await disagreements
      .locator('tbody tr')
      .last()
      .locator('th, td')
      .allTextContents()
    assert.deepEqual([verdict, clean], ['threat', 'trusting'])
    assert.match(found ?? '', /ClamAV/)
    window.assertNoFaults()
  })

  test('markup and invisible characters in file names are shown as text', async () => {
    for (const path of ['/', '/history']) {
      await follow(path)
      await page.getByText(evilNameShown).first().waitFor()
    }
    await page.getByText(evilNameShown).first().click()
    await dialog().getByText(evilNameShown).first().waitFor()
    assert.match(await page.title(), /Assay/)
    window.assertNoFaults()
  })

  test('every page passes axe in both themes, and shows its actions on a phone and a small laptop', {
    timeout: 240_000,
  }, async () => {
    const findings: string[] = []
    await window.open('/')
    for (const [path, heading] of pages) {
      await follow(path)
      await shown(heading)
      await page.waitForLoadState('networkidle')
      for (const chart of await page.getByText('Show as table: Malware scans').all()) await chart.click()
      for (const theme of ['light', 'dark'] as const) {
        await setTheme(page, theme)
        findings.push(
          ...(await listSerious(page, theme === 'dark' ? ['color-contrast'] : [])).map(
            (finding) => `${path} ${theme}: ${finding}`,
          ),
        )
      }
      for (const [width, height] of [
        [360, 740],
        [1024, 768],
        [1280, 800],
      ] as const) {
        await page.setViewportSize({ width, height })
        const overflow = await measureOverflow(page)
        if (overflow > 0) findings.push(`${path} at ${width} px is ${overflow} px too wide`)
        for (const name of await listHiddenActions(page)) findings.push(`${path} at ${width} px hides ${name}`)
      }
    }
    assert.deepEqual(findings, [])
    window.assertNoFaults()
  })

  test('the chosen theme persists, and the system theme is the default', async () => {
    const readBackground = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    await follow('/')
    await press('Dark')
    assert.equal(await readTheme(page), 'dark')
    await page.reload()
    await shown('Overview')
    assert.equal(await readTheme(page), 'dark')
    const dark = await readBackground()
    await press('Light')
    assert.notEqual(await readBackground(), dark)

    const darkWindow = await openWindow(browser, service.url, { colorScheme: 'dark' })
    await darkWindow.open('/sign-in')
    await darkWindow.page.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await readTheme(darkWindow.page), 'dark')
    darkWindow.assertNoFaults()
    await darkWindow.close()
  })

  test('one of 20,000 scans is found by its name and by its hash', async () => {
    await database.pool.query(
      `insert into scans (id, account_id, kind, mode, region, status, content_length, content_type, content_name, signals,
         metadata, created_at, completed_at)
       select gen_random_uuid(), account_id, 'malware', 'sync', 'x', 'clean', 1, 'text/plain', 'letter-' || n || '.txt',
         '{}', jsonb_build_object('hash_sha256', encode(sha256(n::text::bytea), 'hex')), at, at
       from (select account_id from memberships where account_id is not null limit 1) as account,
         generate_series(1, 20000) as n, lateral (select now() - n * interval '1 second' as at) as times`,
    )
    await follow('/history')
    const shownNames = () => page.locator('tbody tr td:first-child').allTextContents()
    const search = async (label: string, text: string) => {
      await page.getByLabel(label, { exact: true }).fill(text)
      await waitUntil(`${label} ${text} to be found alone`, async () => (await shownNames()).length === 1)
      assert.deepEqual(await shownNames(), ['letter-13214.txt'])
      // A link to the page keeps the search.
      await page.reload()
      await page.getByText('letter-13214.txt').waitFor()
      await page.getByLabel(label, { exact: true }).fill('')
      await waitUntil('all scans to be shown', async () => (await shownNames()).length > 1)
    }
    await search('File name', 'ter-13214.t')
    await search('SHA-256', createHash('sha256').update('13214').digest('hex'))
    window.assertNoFaults()
  })

  test('signing out ends the session, and a phone can sign in again', async () => {
    await press('Sign out')
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    const cookies = await page.context().cookies(`${service.url}/admin`)
    assert.deepEqual(
      cookies.map(({ name }) => name),
      ['assay_device'],
    )
    const phone = await openWindow(browser, service.url, { viewport: { width: 360, height: 740 }, hasTouch: true })
    await phone.open('/keys')
    await phone.page.getByLabel('Email').fill(email)
    await phone.page.getByLabel('Password').fill('not this one at all')
    await phone.page.getByRole('button', { name: 'Sign in' }).click()
    await phone.page.getByText(/^Wrong email address/).waitFor()
    assert.deepEqual(await listSerious(phone.page), [])
    await phone.page.getByLabel('Password').fill(goodPassword)
    await phone.page.getByRole('button', { name: 'Sign in' }).click()
    await phone.page.getByRole('button', { name: 'Menu' }).click()
    await phone.page.getByRole('link', { name: 'History' }).click()
    await phone.page.getByRole('heading', { level: 1, name: 'History' }).waitFor()
    assert.equal(await measureOverflow(phone.page), 0)
    phone.assertNoFaults()
    await phone.close()
  })
})
