import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { DeliveryDetail, KeyRow, Overview, ScanDetail, ScanRow, Usage, Webhooks } from '@assay/contract/admin'
import { eicar, eicarSignal } from '../support/archives.ts'
import { newEmail, openAccount, type Visitor } from '../support/console.ts'
import { filePart, formType, images, textPart, toForm } from '../support/forms.ts'
import { assertProblem } from '../support/problems.ts'
import { openReceiver, type Receiver, verifyDelivery } from '../support/receiver.ts'
import { lacksClamAv, toVerdict } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { makeCaller, toId } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const { admin, url } = getSharedService()
const lacking = await lacksClamAv(url)
const gone = { status: 404, kind: 'not-found' as const }

type Opened = Awaited<ReturnType<typeof openAccount>>
type Page<T> = { items: T[]; next: string | null }
type Delivery = DeliveryDetail['delivery']

/** Sends a scan as the scan page does, with the session instead of an API key. */
const scanAs = (who: Visitor, how: string, content: Buffer | string, fields: Record<string, string> = {}) =>
  admin.send(who, 'POST', `/scan/${how}/file`, {
    body: toForm([...Object.entries(fields).map(([name, value]) => textPart(name, value)), filePart(content)]),
    headers: { 'content-type': formType },
  })
const getRemaining = async (who: Visitor) =>
  (await admin.ask<{ credit_remaining: number }>(who, 'GET', '/account')).credit_remaining

describe('a member of an account', { skip: lacking }, () => {
  let receiver: Receiver
  let account: Opened
  let stranger: Opened
  let owner: Visitor
  before(async () => {
    receiver = await openReceiver((path) => ({ status: path.startsWith('/fails') ? 410 : 200, text: 'heard' }))
    account = await openAccount(admin, { name: 'Holder', credits: 1000, plan: 'free' })
    stranger = await openAccount(admin)
    owner = account.owner
  })
  after(() => receiver.close())
  const list = (query = '') => admin.ask<Page<ScanRow>>(owner, 'GET', `/scans${query}`)

  test('scans from the console are charged once each, and rejected requests are free', async () => {
    const before = await getRemaining(owner)
    const verdict = toVerdict(await scanAs(owner, 'malware/scan', eicar, { file_name: 'eicar.com' }))
    assert.deepEqual([verdict.status, verdict.signals], ['threat', [eicarSignal]])
    assert.equal(toVerdict(await scanAs(owner, 'nsfw/images/scan', images['one.png'])).status, 'clean')
    const id = toId(await scanAs(owner, 'malware/submit', 'in the background'))
    await waitUntil('the verdict', async () => {
      const { scan } = await admin.ask<ScanDetail>(owner, 'GET', `/scans/${id}`)
      return scan.status === 'clean'
    })
    assert.equal((await scanAs(owner, 'malware/scan', '')).status, 422)
    assert.equal(before - (await getRemaining(owner)), 3)
    const rows = (await list()).items
    assert.deepEqual(
      rows.map(({ key_name }) => key_name),
      ['console', 'console', 'console'],
    )
    // The internal key of the console is not listed, so nobody can use, rotate or revoke it.
    const keys = await admin.ask<KeyRow[]>(owner, 'GET', '/keys')
    assert.deepEqual(
      keys.map(({ name }) => name),
      ['default'],
    )
  })

  test('sees a summary of the account', async () => {
    const overview = await admin.ask<Overview>(owner, 'GET', '/overview')
    assert.deepEqual(overview.today, { scans: 3, clean: 2, threat: 1, error: 0, pending: 0 })
    assert.equal(overview.days.length, 30)
    assert.deepEqual(overview.days.at(-1), {
      day: new Date().toISOString().slice(0, 10),
      clean: 2,
      threat: 1,
      error: 0,
      pending: 0,
    })
    assert.equal(overview.days[0]?.clean, 0)
    assert.equal(overview.latest.length, 3)
    assert.equal(overview.credit_limit - overview.credit_remaining, 3)
    // Scans with the internal key of the console do not complete the step of using a key.
    assert.deepEqual(overview.checklist, { has_key: false, has_scanned: true, has_webhook: false })
  })

  test('filters the history by status, kind, key, day and hash, page by page', async () => {
    const caller = makeCaller(url, account.api_key)
    for (let n = 0; n < 4; n++) await caller.sendFile('malware', 'scan', `scan ${n}`)
    const [key] = await admin.ask<KeyRow[]>(owner, 'GET', '/keys')
    const count = async (query: string) => (await list(query)).items.length
    const today = new Date().toISOString().slice(0, 10)
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
    assert.equal(await count(''), 7)
    assert.equal(await count('?status=threat'), 1)
    assert.equal(await count('?kind=nsfw_image'), 1)
    assert.equal(await count(`?key=${key?.id}`), 4)
    assert.equal(await count(`?hash=${createHash('sha256').update(eicar).digest('hex')}`), 1)
    assert.equal(await count(`?from=${today}&to=${today}`), 7)
    assert.equal(await count(`?from=${tomorrow}`), 0)
    assert.equal(await count('?status=clean&kind=malware'), 5)

    const all: string[] = []
    let cursor: string | null = ''
    for (let pages = 0; cursor !== null; pages++) {
      const page: Page<ScanRow> = await list(`?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`)
      assert(page.items.length <= 3 && pages < 3)
      all.push(...page.items.map(({ id }) => id))
      cursor = page.next
    }
    assert.equal(new Set(all).size, 7)
    assert.deepEqual(
      (await list()).items.map(({ id }) => id),
      all,
    )
  })

  test('exports the history as CSV, in which formulas and quotes in names are text', async () => {
    const names = ['=cmd|calc.exe', '+1', '@SUM(A1)', '-2', 'a "quoted", name', '<script>alert(1)</script>.png']
    const caller = makeCaller(url, account.api_key)
    for (const name of names) await caller.sendFile('malware', 'scan', randomUUID(), { file_name: name })
    const answer = await admin.send(owner, 'GET', '/scans?status=clean&format=csv')
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['content-type'], 'text/csv; charset=utf-8')
    assert.equal(answer.headers['content-disposition'], 'attachment; filename="scans.csv"')
    assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    const lines = answer.text.split('\r\n')
    assert.equal(
      lines[0],
      'id,scan_type,status,content_name,content_length,content_type,signals,sha256,key_name,created_at,completed_at,' +
        'revised_status,revised_at',
    )
    assert.equal(lines.length, 1 + 12 + 1)
    for (const line of lines.slice(1, -1)) assert.match(line, /^[0-9a-f-]{36},(malware|nsfw_image),clean,/)
    for (const name of names.slice(0, 4)) assert(answer.text.includes(`,clean,'${name},`), name)
    assert(answer.text.includes(',clean,"a ""quoted"", name",'))
    const threats = await admin.send(owner, 'GET', '/scans?status=threat&format=csv')
    assert.match(
      threats.text.split('\r\n')[1] ?? '',
      /,threat,eicar\.com,68,.*,Virus:Eicar-Test-Signature,[0-9a-f]{64},console,/,
    )
  })

  test('finds scans by part of their name, whose wildcards mean themselves, and exports them as JSON', async () => {
    const caller = makeCaller(url, account.api_key)
    for (const name of ['Rechnung_100%.PDF', 'rechnungen.pdf', 'a\\b.pdf']) {
      assert.equal((await caller.sendFile('malware', 'scan', randomUUID(), { file_name: name })).status, 201)
    }
    const find = async (name: string) => {
      const answer = await admin.send(owner, 'GET', `/scans?format=json&name=${encodeURIComponent(name)}`)
      assert.equal(answer.headers['content-disposition'], 'attachment; filename="scans.json"')
      return (JSON.parse(answer.text) as { content_name: string }[]).map(({ content_name }) => content_name).sort()
    }
    assert.deepEqual(await find('rechnung'), ['Rechnung_100%.PDF', 'rechnungen.pdf'])
    assert.deepEqual(await find('g_1'), ['Rechnung_100%.PDF'])
    assert.deepEqual(await find('0%'), ['Rechnung_100%.PDF'])
    assert.deepEqual(await find('\\'), ['a\\b.pdf'])
    assert.deepEqual(await find('nothing like it'), [])
  })

  test('sees rejected requests by day and status', async () => {
    const poor = await openAccount(admin, { plan: 'free', credits: 1 })
    const caller = makeCaller(url, poor.api_key)
    assert.equal((await caller.sendFile('malware', 'scan', 'the only one')).status, 201)
    for (let n = 0; n < 3; n++) assert.equal((await caller.sendFile('malware', 'scan', 'one too many')).status, 403)
    assert.equal((await caller.sendFile('malware', 'scan', '')).status, 403)
    let usage: Usage | undefined
    await waitUntil('the rejected requests to be counted', async () => {
      usage = await admin.ask<Usage>(poor.owner, 'GET', '/usage')
      return usage.refusals.reduce((sum, { count }) => sum + count, 0) >= 4
    })
    const day = new Date().toISOString().slice(0, 10)
    assert.deepEqual(usage?.refusals, [{ day, status: 403, count: 4 }])
    assert.deepEqual(usage?.days, [
      { day, kind: 'malware', key_name: 'default', clean: 1, threat: 0, error: 0, pending: 0 },
    ])
    assert(usage?.runs_out_at !== null && usage.credit_remaining === 0)
  })

  test('creates a key, uses it, rotates it with an overlap, and revokes it by its name', async () => {
    const ping = async (key: string) => (await fetch(`${url}/v1/ping`, { headers: { 'x-api-key': key } })).status
    type NewKey = { key: KeyRow; api_key: string }
    const first = await admin.ask<NewKey>(owner, 'POST', '/keys', { name: '  <b>build</b> ' })
    assert.equal(first.key.name, '<b>build</b>')
    assert.equal(await ping(first.api_key), 200)
    const second = await admin.ask<NewKey>(owner, 'POST', `/keys/${first.key.id}/rotate`, { overlap_hours: 1 })
    assert.equal(second.key.name, first.key.name)
    assert.deepEqual([await ping(first.api_key), await ping(second.api_key)], [200, 200])
    const keys = await admin.ask<KeyRow[]>(owner, 'GET', '/keys')
    const old = keys.find(({ id }) => id === first.key.id)
    const hours = (Date.parse(old?.expires_at ?? '') - Date.now()) / 3_600_000
    assert(hours > 0.9 && hours <= 1, `${hours} h`)
    assert(!JSON.stringify(keys).includes(first.api_key))
    // Without an overlap the old key stops working immediately.
    const third = await admin.ask<NewKey>(owner, 'POST', `/keys/${second.key.id}/rotate`, { overlap_hours: 0 })
    assert.deepEqual([await ping(second.api_key), await ping(third.api_key)], [401, 200])

    const revoke = (name: string) => admin.send(owner, 'POST', `/keys/${third.key.id}/revoke`, { body: { name } })
    await assertProblem(await revoke('build'), { status: 422, kind: 'validation', errors: ['name'] })
    assert.equal(await ping(third.api_key), 200)
    assert.equal((await revoke('<b>build</b>')).status, 204)
    assert.equal(await ping(third.api_key), 401)
    const again = await admin.send(owner, 'POST', `/keys/${third.key.id}/rotate`, { body: { overlap_hours: 1 } })
    assert.equal(again.status, 409)
  })

  test('restricts a key, and a rotated key keeps the restrictions', async () => {
    const read = async (key: string) =>
      (await fetch(`${url}/v1/malware/${randomUUID()}`, { headers: { 'x-api-key': key } })).status
    type NewKey = { key: KeyRow; api_key: string }
    const only = { allow: ['scan'], kinds: ['malware'], networks: null }
    const first = await admin.ask<NewKey>(owner, 'POST', '/keys', { name: 'gateway', ...only })
    assert.equal(await read(first.api_key), 403)
    const second = await admin.ask<NewKey>(owner, 'POST', `/keys/${first.key.id}/rotate`, { overlap_hours: 0 })
    assert.equal(await read(second.api_key), 403)
    const path = `/keys/${second.key.id}/restrict`
    const networks = ['127.0.0.0/8', '::1/128']
    const changed = await admin.ask<KeyRow>(owner, 'POST', path, { allow: null, kinds: ['malware'], networks })
    assert.equal(await read(second.api_key), 422)
    const listed = (await admin.ask<KeyRow[]>(owner, 'GET', '/keys')).find(({ id }) => id === second.key.id)
    assert.deepEqual([listed?.allow, listed?.kinds, listed?.networks], [null, ['malware'], networks])
    assert.deepEqual([changed.allow, changed.kinds, changed.networks], [null, ['malware'], networks])
    await assertProblem(await admin.send(stranger.owner, 'POST', path, { body: { ...only, allow: null } }), gone)
  })

  test('sends a test webhook, sees deliveries, and replays them', async () => {
    const reveal = async () => (await admin.ask<{ secret: string }>(owner, 'POST', '/webhooks/secret/reveal')).secret
    const first = await reveal()
    assert.equal(first, account.webhook_secret)
    const tested = await admin.ask(owner, 'POST', '/webhooks/test', { url: `${receiver.url}/test` })
    assert.deepEqual(
      { ...(tested as object), duration_ms: 0 },
      {
        status: 200,
        duration_ms: 0,
        // The receiver is in a network that only the operator has opened.
        answer: 'The response is not shown, because the address of the receiver is not public.',
        delivered: true,
      },
    )
    const [sample] = receiver.at('/test')
    assert(sample)
    verifyDelivery(sample, first)
    // The audit log, which keeps its entries, does not name secrets of the receiver.
    await admin.ask(owner, 'POST', '/webhooks/test', { url: `${receiver.url}/hook?token=of-the-receiver` })
    const audit = await admin.ask<Page<{ target: string }>>(
      admin.token,
      'GET',
      '/operator/audit?action=webhook.test&limit=100',
    )
    const targets = audit.items
      .map(({ target }) => target)
      .filter((target) => target.startsWith(`${receiver.url}/hook`))
    assert.deepEqual(targets, [`${receiver.url}/hook?token=(hidden)`])

    const caller = makeCaller(url, account.api_key)
    const submit = (path: string) =>
      caller.sendFile('malware', 'submit', randomUUID(), { callback_url: `${receiver.url}${path}` })
    const find = (scan: string) => admin.ask<Page<Delivery>>(owner, 'GET', `/deliveries?scan=${scan}`)
    const scan = toId(await submit('/good'))
    await waitUntil('the delivery', async () => (await find(scan)).items[0]?.state === 'delivered')
    const [delivery] = (await find(scan)).items
    assert(delivery)
    const detail = await admin.ask<DeliveryDetail>(owner, 'GET', `/deliveries/${delivery.id}`)
    assert.equal(JSON.parse(detail.body).id, scan)
    assert.deepEqual([detail.attempts.length, detail.attempts[0]?.status], [1, 200])
    await admin.ask(owner, 'POST', `/deliveries/${delivery.id}/replay`)
    await waitUntil('the replay', () => receiver.at('/good').length === 2)
    const [one, two] = receiver.at('/good')
    assert(one && two)
    assert.equal(one.headers['webhook-id'], two.headers['webhook-id'])
    assert.equal(String(one.body), String(two.body))

    const failing = toId(await submit('/fails'))
    await waitUntil('the delivery to fail', async () => {
      const [found] = (await find(failing)).items
      return found?.state === 'stopped' || found?.state === 'dead'
    })
    const before = receiver.at('/fails').length
    const replayed = await admin.ask(owner, 'POST', '/deliveries/replay-failed', { since: new Date(0).toISOString() })
    assert.deepEqual(replayed, { replayed: 1 })
    await waitUntil('the second attempt', () => receiver.at('/fails').length > before)

    const secret = (await admin.ask<{ secret: string }>(owner, 'POST', '/webhooks/secret/rotate')).secret
    assert.notEqual(secret, first)
    assert.equal(await reveal(), secret)
    const webhooks = await admin.ask<Webhooks>(owner, 'GET', '/webhooks')
    assert(webhooks.previous_until)
    assert.deepEqual(webhooks.endpoints.map((endpoint) => new URL(endpoint.url).pathname).sort(), ['/fails', '/good'])
    assert.equal((await admin.ask<Overview>(owner, 'GET', '/overview')).checklist.has_webhook, true)
  })

  test('cannot reach another account by any id', async () => {
    const key = (await admin.ask<KeyRow[]>(owner, 'GET', '/keys'))[0]
    const scan = (await list('?limit=1')).items[0]
    const delivery = (await admin.ask<Page<Delivery>>(owner, 'GET', '/deliveries')).items[0]
    const invitation = { role: 'member', email: newEmail() }
    const invite = await admin.ask<{ id: string; url: string }>(owner, 'POST', '/members', invitation)
    const self = await admin.ask<{ member: { id: string } }>(owner, 'GET', '/session')
    assert(key && scan && delivery)
    const attempts: [string, string, object?][] = [
      ['GET', `/scans/${scan.id}`],
      ['POST', `/keys/${key.id}/rotate`, { overlap_hours: 0 }],
      ['POST', `/keys/${key.id}/revoke`, { name: key.name }],
      ['GET', `/deliveries/${delivery.id}`],
      ['POST', `/deliveries/${delivery.id}/replay`],
      ['DELETE', `/members/${invite.id}`],
      ['DELETE', `/members/${self.member.id}`],
    ]
    for (const [method, path, body] of attempts) {
      const answer = await admin.send(stranger.owner, method, path, body === undefined ? {} : { body })
      await assertProblem(answer, gone, `${method} ${path}`)
    }
    for (const path of [
      `/scans?key=${key.id}`,
      `/scans?cursor=${scan.id}`,
      `/deliveries?scan=${delivery.scan_id}`,
      '/scans',
    ]) {
      assert.deepEqual(await admin.ask(stranger.owner, 'GET', path), { items: [], next: null }, path)
    }
    assert.equal((await admin.send(stranger.owner, 'GET', '/scans?format=csv')).text.split('\r\n').length, 2)
    // The other account is unchanged, and its invitation still works.
    assert.equal((await admin.send(owner, 'GET', `/scans/${scan.id}`)).status, 200)
    assert.equal((await admin.accept(invite.url, { email: invitation.email })).status, 200)
  })
})
