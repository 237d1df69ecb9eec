import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { eicar, eicarSignal } from '../support/archives.ts'
import { makeAdmin } from '../support/console.ts'
import { images } from '../support/forms.ts'
import { openBefore } from '../support/open-before.ts'
import { openCanaries, openOrigin, world } from '../support/origin.ts'
import { assertProblem } from '../support/problems.ts'
import { openReceiver, type Reaction, verifyDelivery } from '../support/receiver.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { startService } from '../support/start-service.ts'
import { makeCaller, toId } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const lacking = await lacksClamAv(getSharedService().url)

/** Responses of the receiver by the first part of the path; other paths get 204. */
const reactions: Record<string, (before: number) => Reaction> = {
  fails: (before) => ({ status: before < 2 ? 500 : 200, text: before < 2 ? 'not now' : 'thanks' }),
  down: () => ({ status: 503 }),
  refuses: () => ({ status: 400 }),
  gone: () => ({ status: 410 }),
  moves: () => ({ status: 307, headers: { location: '/moved-to' } }),
  waits: (before) => (before === 0 ? { status: 503, headers: { 'retry-after': '2' } } : { status: 200 }),
}

describe('a webhook', { skip: lacking || alreadyTested }, () => {
  const service = openBefore(() => startService({ ASSAY_OUTBOUND_ALLOW: world, ASSAY_WEBHOOK_RETRIES: '1s,1s' }))
  const caller = openBefore(async () => makeCaller(service.url, service.apiKey))
  const admin = openBefore(async () => {
    const api = makeAdmin(service.url, '')
    return { ...api, member: await api.join(service.consoleLink) }
  })
  const receiver = openBefore(() =>
    openReceiver((path, count) => reactions[path.split('/')[1] ?? '']?.(count) ?? { status: 204 }),
  )

  /** A path that no other test uses. */
  const newPath = (reaction: string) => `/${reaction}/${randomUUID()}`
  const submit = async (path: string, content: string | Buffer = 'told of') =>
    toId(await caller.sendFile('malware', 'submit', content, { callback_url: `${receiver.url}${path}` }))
  const waitForAttempts = (path: string, count: number) =>
    waitUntil(`${count} attempts at ${path}`, () => receiver.at(path).length >= count)
  const listDeliveries = async (...options: string[]) =>
    (await service.operate('webhooks', 'deliveries', '--limit', '1000', ...options)) as Delivery[]
  /** The delivery of a scan, once it is as wanted. Asks the console: the operator's program takes longer to start. */
  async function waitForState(scanId: string, state: string): Promise<Found> {
    let found: Found | undefined
    await waitUntil(`the delivery of ${scanId} to be ${state}`, async () => {
      const page = await admin.ask<{ items: Found[] }>(admin.member, 'GET', `/deliveries?scan=${scanId}`)
      found = page.items[0]
      return found?.state === state
    })
    return found as Found
  }

  test('carries the result, signed, for all four ways to submit', async () => {
    const origin = await openOrigin({ '/picture': images['one.png'], '/virus': eicar })
    const paths = [1, 2, 3, 4].map(() => newPath('good'))
    const toFields = (n: number) => ({ callback_url: `${receiver.url}${paths[n]}?token=a%20b` })
    const answers = [
      await caller.sendFile('malware', 'submit', eicar, toFields(0)),
      await caller.sendFile('nsfw/images', 'submit', images['one.png'], toFields(1)),
      await caller.sendUrl('malware', 'submit', `${origin.url}/virus`, toFields(2)),
      await caller.sendUrl('nsfw/images', 'submit', `${origin.url}/missing`, toFields(3)),
    ]
    const expected = [[eicarSignal], [], [eicarSignal], ['Error:DownloadFailed']]
    for (const [n, answer] of answers.entries()) {
      const path = `${paths[n]}?token=a%20b`
      await waitForAttempts(path, 1)
      const [delivery] = receiver.at(path)
      assert(delivery !== undefined)
      const result = verifyDelivery(delivery, service.webhookSecret)
      assert.deepEqual(result.signals, expected[n])
      const kind = n % 2 === 0 ? 'malware' : 'nsfw/images'
      assert.deepEqual(result, await caller.complete(kind, toId(answer)), 'the same as who asks is told')
    }
    await origin.close()
  })

  test('that was forged or changed is noticed', async () => {
    const path = newPath('good')
    await submit(path)
    await waitForAttempts(path, 1)
    const [genuine] = receiver.at(path)
    assert(genuine !== undefined)
    verifyDelivery(genuine, service.webhookSecret)
    const changed = { ...genuine, body: Buffer.from(genuine.body.toString().replace('clean', 'Clean')) }
    assert.throws(() => verifyDelivery(changed, service.webhookSecret))
    assert.throws(() => verifyDelivery(genuine, `${service.webhookSecret}x`))
  })

  test('that failed is sent again, the same bytes under the same id, and all of it is on record', async () => {
    const path = newPath('fails')
    const id = await submit(path)
    await waitForAttempts(path, 3)
    const attempts = receiver.at(path)
    for (const attempt of attempts) {
      assert.equal(verifyDelivery(attempt, service.webhookSecret).id, id)
      assert.deepEqual(attempt.body, attempts[0]?.body)
      assert.equal(attempt.headers['webhook-id'], attempts[0]?.headers['webhook-id'])
    }
    const delivery = await waitForState(id, 'delivered')
    const listed = (await listDeliveries()).find(({ scan_id }) => scan_id === id)
    assert.deepEqual([listed?.id, listed?.state, listed?.attempts], [delivery.id, 'delivered', 3])
    const shown = (await service.operate('webhooks', 'show', delivery.id)) as Shown
    assert.equal(shown.body, attempts[0]?.body.toString())
    assert.deepEqual(
      shown.log.map(({ status, answer }) => [status, answer]),
      [
        [500, 'not now'],
        [500, 'not now'],
        [200, 'thanks'],
      ],
    )
    assert.deepEqual([shown.attempts, shown.last_status, shown.next_at], [3, 200, null])
  })

  test('ends with the last attempt, a redirect being none, or with 410, until an operator has it sent again', async () => {
    const since = new Date().toISOString()
    const paths = ['down', 'down', 'moves', 'gone'].map(newPath)
    const ids = await Promise.all(paths.map((path) => submit(path)))
    const states = ['dead', 'dead', 'dead', 'stopped']
    for (const path of paths.slice(0, 3)) await waitForAttempts(path, 3)
    const [first = { id: '' }] = await Promise.all(ids.map((id, n) => waitForState(id, states[n] ?? '')))
    const counts = () => paths.map((path) => receiver.at(path).length)
    assert.deepEqual(counts(), [3, 3, 3, 1])
    assert.equal(receiver.at('/moved-to').length, 0)

    for (const reaction of ['down', 'moves', 'gone']) reactions[reaction] = () => ({ status: 200 })
    assert.deepEqual(await service.operate('webhooks', 'replay', first.id), { replayed: 1 })
    await waitForState(ids[0] ?? '', 'delivered')
    assert.deepEqual(await service.operate('webhooks', 'replay', '--failed-since', since), { replayed: 3 })
    for (const path of paths) await waitForAttempts(path, path === paths[3] ? 2 : 4)
    for (const id of ids) await waitForState(id, 'delivered')
    assert.deepEqual(counts(), [4, 4, 4, 2])
    for (const path of paths) assert.deepEqual(receiver.at(path).at(-1)?.body, receiver.at(path)[0]?.body)
  })

  test('waits as long as the receiver asks for, within reason', async () => {
    const path = newPath('waits')
    await submit(path)
    await waitForAttempts(path, 2)
    const [first, second] = receiver.at(path).map(({ headers }) => Number(headers['webhook-timestamp']))
    // The receiver asked for two seconds; the service alone would have waited 1.2 at most.
    assert(Number(second) - Number(first) >= 2, `${first} and ${second}`)
  })

  test('to a receiver that hangs delays no other', async () => {
    const hanging = await openReceiver(() => 'hang')
    for (let n = 0; n < 20; n++) {
      toId(await caller.sendFile('malware', 'submit', 'late', { callback_url: `${hanging.url}/${n}` }))
    }
    await waitUntil('some to hang', () => hanging.received.length > 0)
    const path = newPath('good')
    await submit(path)
    await waitForAttempts(path, 1)
    assert(hanging.received.length < 20, 'one receiver does not get all at once')
    await hanging.close()
  })

  test('is signed with both secrets after a change of the secret', async () => {
    const account = (await service.operate('accounts', 'create', '--name', 'rotates')) as Created
    const own = makeCaller(service.url, account.api_key)
    const rotated = (await service.operate('webhooks', 'rotate-secret', '--account', account.id)) as Created
    assert.notEqual(rotated.webhook_secret, account.webhook_secret)
    const path = newPath('fails')
    const id = toId(await own.sendFile('malware', 'submit', 'x', { callback_url: `${receiver.url}${path}` }))
    await waitForAttempts(path, 2)
    const [first, second] = receiver.at(path)
    assert(first !== undefined && second !== undefined)
    assert.equal(verifyDelivery(first, rotated.webhook_secret, account.webhook_secret).id, id)
    // A receiver that knows only the old secret gets the delivery with the second attempt.
    assert.equal(verifyDelivery(second, account.webhook_secret, rotated.webhook_secret).id, id)
    const endpoints = (await service.operate('webhooks', 'endpoints', '--account', account.id)) as Endpoint[]
    assert.deepEqual(
      endpoints.map(({ url, account_id, paused_at }) => ({ url, account_id, paused_at })),
      [{ url: `${receiver.url}${path}`, account_id: account.id, paused_at: null }],
    )
  })

  test('can be tried by an operator', async () => {
    const settings = { ASSAY_DATA_DIR: service.dataDir, ASSAY_OUTBOUND_ALLOW: world }
    const accounts = (await service.operate('accounts', 'list')) as { id: string; name: string }[]
    const account = accounts.find(({ name }) => name === 'first account')
    assert(account !== undefined)
    const path = newPath('good')
    const tried = (await service.operate('webhooks', 'test', `${receiver.url}${path}`, '--account', account.id)) as {
      status: number
    }
    assert.equal(tried.status, 204)
    const [delivery] = receiver.at(path)
    assert(delivery !== undefined)
    verifyDelivery(delivery, service.webhookSecret)
    const failed = await runProgram(
      settings,
      'webhooks',
      'test',
      `${receiver.url}${newPath('refuses')}`,
      '--account',
      account.id,
    )
    assert.equal(failed.code, 1)
    const inside = await runProgram(settings, 'webhooks', 'test', 'http://127.0.0.1/', '--account', account.id)
    assert.notEqual(inside.code, 0)
    assert.match(inside.err, /not (public|lead to a public)/)
  })

  test('to an address inside is refused when it is written out, and never made when a name leads there', async () => {
    const canaries = await openCanaries()
    const address = `127.0.0.1:${canaries.port}`
    const refused = { status: 422, kind: 'validation' as const, errors: ['callback_url'] }
    await assertProblem(
      await caller.sendFile('malware', 'submit', 'x', { callback_url: `http://${address}/` }),
      refused,
    )
    const answer = await caller.sendFile('malware', 'submit', 'x', {
      callback_url: `http://localhost:${canaries.port}/`,
    })
    const { id } = await waitForState(toId(answer), 'dead')
    const { log } = (await service.operate('webhooks', 'show', id)) as Shown
    assert.deepEqual(
      log.map(({ status }) => status),
      [null, null, null],
    )
    for (const { answer: why } of log) assert.match(why, /not (public|lead to a public)/)
    assert.deepEqual(canaries.touched, [])
    canaries.close()
  })
})

type Found = { id: string; state: string }
type Delivery = { id: string; scan_id: string; state: string; attempts: number }
type Shown = Delivery & {
  body: string
  last_status: number | null
  next_at: string | null
  log: { status: number | null; answer: string }[]
}
type Created = { id: string; api_key: string; webhook_secret: string }
type Endpoint = { url: string; account_id: string; paused_at: string | null }
