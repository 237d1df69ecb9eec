import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { AlertChannel, Alerts } from '@assay/contract/admin'
import type { Browser, Page } from 'playwright-core'
import { eicar } from '../support/archives.ts'
import { lacksChromium, openChromium } from '../support/chromium.ts'
import { goodPassword, makeAdmin, newEmail, openAccount, type Visitor } from '../support/console.ts'
import { listSerious, openWindow, type Window } from '../support/console-page.ts'
import { type Mailbox, openMailbox } from '../support/mailbox.ts'
import { world } from '../support/origin.ts'
import { openReceiver, type Received, type Receiver } from '../support/receiver.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { type Service, startService, withoutImages } from '../support/start-service.ts'
import { makeCaller } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const lacking = alreadyTested || (await lacksClamAv(getSharedService().url)) || lacksChromium()
const adminToken = 'f'.repeat(40)
const email = newEmail('owner')
const sender = 'assay@example.com'

/** Verifies the signatures as docs/webhooks.md tells receivers to, and returns the body. */
function verify({ headers, body }: Received, secret: string): { type: string; topic: string | null; text: string } {
  assert.equal(headers['x-api-signature'], createHmac('sha256', secret).update(body).digest('hex'))
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers
  const hmac = createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
  assert.equal(signature, `v1,${hmac.update(`${id}.${timestamp}.`).update(body).digest('base64')}`)
  const content = JSON.parse(body.toString())
  assert.equal(content.id, id)
  return content
}

describe('alerts', { skip: lacking }, () => {
  let mailbox: Mailbox
  let receiver: Receiver
  let service: Service
  let browser: Browser
  let window: Window
  let page: Page
  let owner: Visitor
  let isDead = true
  before(async () => {
    mailbox = await openMailbox()
    receiver = await openReceiver((path) => ({ status: path === '/dead' && isDead ? 500 : 204 }))
    service = await startService({
      ...withoutImages,
      ASSAY_OUTBOUND_ALLOW: world,
      ASSAY_SMTP_URL: mailbox.url,
      ASSAY_SMTP_FROM: `Assay <${sender}>`,
      ASSAY_WEBHOOK_RETRIES: '1s',
      ASSAY_ADMIN_TOKEN: adminToken,
    })
    browser = await openChromium()
    window = await openWindow(browser, service.url)
    page = window.page
    const admin = makeAdmin(service.url, adminToken)
    owner = await admin.join(service.consoleLink, email)
  })
  after(async () => {
    await browser?.close()
    await service?.stop()
    await receiver?.close()
    await mailbox?.close()
  })

  const dialog = () => page.getByRole('dialog')
  const press = (name: string, place: Pick<Page, 'getByRole'> = page) =>
    place.getByRole('button', { name, exact: true }).click()
  const admin = () => makeAdmin(service.url, adminToken)
  const readAlerts = () => admin().ask<Alerts>(owner, 'GET', '/alerts')
  const refuse = async (who: Visitor, path: string, body: object) => {
    const answer = await admin().send(who, 'POST', path, { body })
    assert.equal(answer.status, 422, answer.text)
    return answer.text
  }

  test('an owner chooses topics and channels, and tests them', async () => {
    await window.open('/alerts')
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(goodPassword)
    await press('Sign in')
    await page.getByText('No channels').waitFor()
    assert.deepEqual(await listSerious(page), [])

    const channels = [
      ['email', email],
      ['webhook', `${receiver.url}/hook`],
      ['slack', `${receiver.url}/slack`],
      ['teams', `${receiver.url}/teams`],
    ] as const
    for (const [kind, target] of channels) {
      await press('Add a channel')
      await dialog().getByLabel('Send by').selectOption(kind)
      await dialog()
        .getByLabel(kind === 'email' ? 'Email address' : 'URL')
        .fill(target)
      if (kind === 'email') {
        for (const topic of ['Credits are used', 'Webhooks fail', 'Many threats']) {
          await dialog().getByLabel(new RegExp(topic)).uncheck()
        }
        await press('Add', dialog())
        await dialog().getByText('Choose at least one.').waitFor()
        assert.deepEqual(await listSerious(page), [])
        await dialog()
          .getByLabel(/Many threats/)
          .check()
        await dialog()
          .getByLabel(/Webhooks fail/)
          .check()
      }
      await dialog().getByLabel('Threats within an hour', { exact: true }).fill('1')
      await press('Add', dialog())
      await dialog().waitFor({ state: 'detached' })
    }
    assert.deepEqual(
      (await readAlerts()).channels.map(({ kind, target, topics, threats_per_hour }) => [
        kind,
        target,
        topics.toSorted().join(),
        threats_per_hour,
      ]),
      channels.map(([kind, target]) => [
        kind,
        kind === 'email' ? target : new URL(target).host,
        kind === 'email' ? 'threats,webhooks' : 'credits,threats,webhooks',
        1,
      ]),
    )

    const tests = page.getByRole('button', { name: /^Send a test/ })
    const hookPaths = ['/hook', '/slack', '/teams']
    for (const n of [0, 1, 2, 3]) {
      await tests.nth(n).click()
      await page.getByRole('status').getByText('The test message was accepted.').waitFor()
      // The page may still show the message of the previous test, so the arrival is awaited and read anew each time.
      await waitUntil('the test', () => [mailbox.mails, ...hookPaths.map(receiver.at)][n]?.length === 1)
    }
    const [mail] = mailbox.mails
    assert.deepEqual([mail?.from, mail?.to], [sender, [email]])
    assert.match(mail?.raw ?? '', /^Subject: \[Assay\] Test\r?$/m)
    const [hook] = receiver.at('/hook')
    assert(hook)
    assert.deepEqual(
      [verify(hook, service.webhookSecret).type, verify(hook, service.webhookSecret).topic],
      ['alert.test', null],
    )
    assert.deepEqual(await listSerious(page), [])
    window.assertNoFaults()
  })

  test('a threat is told once, by every channel in its own form', async () => {
    const caller = makeCaller(service.url, service.apiKey)
    assert.equal((await caller.sendFile('malware', 'scan', eicar)).status, 201)
    const text = '1 threat was found within an hour; the limit is 1.'
    await waitUntil('the alert', () => mailbox.about('Alert: Threats').length > 0 && receiver.received.length >= 6)
    assert.equal((await caller.sendFile('malware', 'scan', eicar)).status, 201)
    const [mail] = mailbox.about('Alert: Threats')
    assert(mail?.raw.includes(text), mail?.raw)
    const hooks = receiver.at('/hook').map((hook) => verify(hook, service.webhookSecret))
    assert.deepEqual([hooks[1]?.type, hooks[1]?.topic, hooks[1]?.text], ['alert.firing', 'threats', text])
    const [slack, teams] = ['/slack', '/teams'].map((path) => JSON.parse(String(receiver.at(path)[1]?.body)))
    assert.deepEqual(slack, { text: `[Assay] Alert: Threats\n${text}` })
    assert.equal(teams.type, 'message')
    const [card] = teams.attachments
    assert.equal(card.contentType, 'application/vnd.microsoft.card.adaptive')
    assert.deepEqual(
      card.content.body.map((block: { text: string }) => block.text),
      ['Alert: Threats', text],
    )
    assert.deepEqual(
      (await readAlerts()).open.map(({ topic }) => topic),
      ['threats'],
    )
    await page.reload()
    await page.getByRole('region', { name: 'Open alerts' }).getByText(text).waitFor()
  })

  test('a dead webhook is told, and its recovery; nothing is told twice', async () => {
    const caller = makeCaller(service.url, service.apiKey)
    const submit = () => caller.sendFile('malware', 'submit', 'clean', { callback_url: `${receiver.url}/dead` })
    assert.equal((await submit()).status, 202)
    await waitUntil('the alert', () => mailbox.about('Alert: Webhooks').length > 0)
    isDead = false
    assert.equal((await submit()).status, 202)
    await waitUntil('the recovery', () => mailbox.about('Resolved: Webhooks').length > 0)
    await waitUntil('the recovery by webhook', () => receiver.at('/hook').length >= 4)
    assert.deepEqual(
      receiver.at('/hook').map((hook) => verify(hook, service.webhookSecret).type),
      ['alert.test', 'alert.firing', 'alert.firing', 'alert.resolved'],
    )
    assert.equal(mailbox.mails.length, 4)
    const { host } = new URL(receiver.url)
    assert(mailbox.about('Resolved: Webhooks')[0]?.raw.includes(host))
  })

  test('a channel that fails says why', async () => {
    isDead = true
    const { channel } = await admin().ask<{ channel: { id: string } }>(owner, 'POST', '/alerts', {
      kind: 'slack',
      target: `${receiver.url}/dead`,
      topics: ['credits'],
    })
    const tested = await admin().ask<{ delivered: boolean; detail: string }>(
      owner,
      'POST',
      `/alerts/${channel.id}/test`,
    )
    assert.deepEqual(tested, { delivered: false, detail: 'The receiver answered with status 500.' })
    await admin().ask(owner, 'DELETE', `/alerts/${channel.id}`)
    assert.equal((await admin().send(owner, 'POST', `/alerts/${channel.id}/test`)).status, 404)
  })

  test('owners reach members and public addresses only, and no topic of the operators', async () => {
    const topics = ['credits']
    const strangers = await refuse(owner, '/alerts', { kind: 'email', target: 'eve@example.com', topics })
    assert(strangers.includes('a member of this account'))
    for (const target of ['http://10.0.0.1/hook', 'http://169.254.169.254/', 'file:///etc/passwd'])
      await refuse(owner, '/alerts', { kind: 'webhook', target, topics })
    await refuse(owner, '/alerts', { kind: 'webhook', target: 'https://example.com/', topics: ['disk'] })
    await refuse(owner, '/alerts', { kind: 'webhook', target: 'https://example.com/', topics: [] })
  })

  test('an owner cannot send tests without a limit, nor to a person who has left the account', async () => {
    const { ask, send, join } = admin()
    const account = await openAccount(admin())
    const leaving = newEmail('leaving')
    const invited = await ask<{ url: string }>(account.owner, 'POST', '/members', { role: 'member', email: leaving })
    const { member } = await ask<{ member: { id: string } }>(await join(invited.url, leaving), 'GET', '/session')
    const { channel } = await ask<{ channel: AlertChannel }>(account.owner, 'POST', '/alerts', {
      kind: 'email',
      target: leaving,
      topics: ['credits', 'credits'],
      threats_per_hour: 77,
    })
    assert.deepEqual(channel.topics, ['credits'])
    await ask(account.owner, 'PATCH', `/alerts/${channel.id}`, { topics: ['threats', 'threats'] })
    const [changed] = (await ask<Alerts>(account.owner, 'GET', '/alerts')).channels
    assert.deepEqual([changed?.topics, changed?.threats_per_hour], [['threats'], 77])

    const sendTest = async () => (await send(account.owner, 'POST', `/alerts/${channel.id}/test`)).status
    const statuses: number[] = []
    while (statuses.length < 30 && !statuses.includes(429)) statuses.push(await sendTest())
    assert.deepEqual([statuses[0], statuses.at(-1)], [200, 429])
    const countMails = () => mailbox.mails.filter(({ to }) => to.includes(leaving)).length
    assert.equal(countMails(), statuses.length - 1)
    await ask(account.owner, 'DELETE', `/members/${member.id}`)
    assert.equal(await sendTest(), 409)
    assert.equal(countMails(), statuses.length - 1)
  })

  test('operators have channels of their own, whose webhooks are signed with a secret of the channel', async () => {
    const { token, ask } = admin()
    assert.deepEqual((await ask<Alerts>(token, 'GET', '/operator/alerts')).channels, [])
    const { channel, secret } = await ask<{ channel: { id: string }; secret: string }>(
      token,
      'POST',
      '/operator/alerts',
      {
        kind: 'webhook',
        target: `${receiver.url}/operator`,
        topics: ['engine', 'disk'],
      },
    )
    assert.equal((await admin().send(owner, 'DELETE', `/alerts/${channel.id}`)).status, 404)
    await ask(token, 'POST', `/operator/alerts/${channel.id}/test`)
    const [hook] = receiver.at('/operator')
    assert(hook)
    assert.equal(verify(hook, secret).type, 'alert.test')
    await ask(token, 'PATCH', `/operator/alerts/${channel.id}`, { topics: ['signatures'] })
    const [changed] = (await ask<Alerts>(token, 'GET', '/operator/alerts')).channels
    assert.deepEqual(changed?.topics, ['signatures'])
  })
})
