import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, afterEach, before, beforeEach, describe, type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import type { ClaimedDelivery } from '../../src/domain/ports/delivery-store.ts'
import { type Deliver, makeDeliver } from '../../src/domain/webhooks/deliver.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { openDeliveryWorker } from '../../src/workers/delivery-worker.ts'
import { openDeliveries, type TestDeliveries } from './deliveries.ts'
import { newLoopbackSender, openReceiver } from './receivers.ts'

const log = pino({ level: 'silent' })
const sender = newLoopbackSender()
const fine = () => ({ status: 204 })

let deliveries: TestDeliveries
before(async () => {
  deliveries = await openDeliveries()
})
beforeEach(() => deliveries.clear())
// A worker that a failed test leaves open would keep this process from ending.
const opened = new Set<{ close(): Promise<void> }>()
afterEach(async () => {
  for (const worker of opened) await worker.close()
  opened.clear()
})
after(() => deliveries.close())

function open(parts: Parameters<typeof openDeliveryWorker>[0]) {
  const worker = openDeliveryWorker(parts)
  opened.add(worker)
  return worker
}

type Options = Partial<Parameters<typeof openDeliveryWorker>[0]> & { retryMs?: number[]; attemptMs?: number }

function openWorker({ retryMs = [200], attemptMs = 2000, ...options }: Options = {}) {
  const { store } = deliveries
  const deliver = makeDeliver({ sender, store, clock: systemClock, retryMs, attemptMs })
  return open({ store, deliver, log, ...options })
}

async function addMany(url: string, count: number) {
  for (let i = 0; i < count; i++) await deliveries.add(url, `{"number":${i}}`)
}

describe('the delivery worker', () => {
  test('delivers at once what it is poked for, and finds the rest by polling', async () => {
    const receiver = await openReceiver(fine)
    const worker = openWorker()
    await deliveries.add(receiver.url)
    worker.poke()
    await waitUntil('the delivery it was poked for', () => receiver.received.length === 1)
    await deliveries.add(receiver.url)
    await waitUntil('the delivery it was not poked for', () => receiver.received.length === 2)
    await worker.close()
    await receiver.close()
  })

  test('sends nothing without a signature: a secret of another account fails the attempt, and no other delivery', async () => {
    const receiver = await openReceiver(fine)
    const { pool } = deliveries.stores.database
    const other = await deliveries.stores.register()
    await pool.query(
      'update accounts set webhook_secret = (select webhook_secret from accounts where id = $2) where id = $1',
      [other.id, deliveries.account.id],
    )
    const unsigned = await deliveries.add(receiver.url, '{"is":"never sent"}')
    await pool.query('update deliveries set account_id = $2 where id = $1', [unsigned, other.id])
    await deliveries.add(receiver.url, '{"is":"sent"}')
    const worker = openWorker({ retryMs: [60_000] })
    worker.poke()
    await waitUntil('both attempts', async () => {
      const delivery = await deliveries.store.findDelivery(unsigned)
      return receiver.received.length === 1 && delivery?.attempts === 1
    })
    await worker.close()
    assert.equal(receiver.received[0]?.body.toString(), '{"is":"sent"}')
    const stored = await deliveries.store.findDelivery(unsigned)
    assert.match(JSON.stringify(stored), /The webhook secret of the account cannot be opened/)
    await receiver.close()
  })

  test('tries again with the same bytes under the same id, until it is delivered or dead', async () => {
    const receiver = await openReceiver((_, index) => ({ status: index < 2 ? 503 : 200 }))
    const refusing = await openReceiver(() => ({ status: 500 }))
    const worker = openWorker({ retryMs: [100, 100] })
    const id = await deliveries.add(receiver.url, '{"name":"ä€😀"}')
    await deliveries.add(refusing.url)
    worker.poke()
    await waitUntil('both are completed', async () => {
      return receiver.received.length === 3 && (await deliveries.countIn('dead')) === 1
    })
    await worker.close()
    await receiver.close()
    await refusing.close()
    assert.deepEqual(new Set(receiver.received.map(({ body }) => body.toString())), new Set(['{"name":"ä€😀"}']))
    assert.deepEqual(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])), new Set([id]))
    assert.equal(refusing.received.length, 3)
  })

  test('signs with the new secret and the one before after a rotation', async () => {
    const receiver = await openReceiver(fine)
    const { account, stores } = deliveries
    const rotated = await stores.registration.rotateWebhookSecret(account.id)
    await deliveries.add(receiver.url, '{"number":1}')
    const worker = openWorker()
    await waitUntil('it is delivered', () => receiver.received.length === 1)
    await worker.close()
    await receiver.close()
    const [request] = receiver.received
    assert(request !== undefined && rotated !== undefined)
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = request.headers
    const expected = [rotated.webhookSecret, account.webhookSecret].map((secret) => {
      const hmac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
      return `v1,${hmac.update(`${id}.${timestamp}.{"number":1}`).digest('base64')}`
    })
    assert.equal(signatures, expected.join(' '))
  })

  test('gives a receiver four at a time, also with two processes, and none waits for one that hangs', async () => {
    const hanging = await openReceiver(() => 'never')
    const quick = await openReceiver(fine)
    await addMany(hanging.url, 30)
    const workers = [openWorker({ attemptMs: 10_000 }), openWorker({ attemptMs: 10_000 })]
    await waitUntil('the hanging receiver has its share', () => hanging.received.length === 4)
    await addMany(quick.url, 30)
    for (const worker of workers) worker.poke()
    await waitUntil('the other has all of its own', () => quick.received.length === 30)
    // The first four hang still, so nothing was delivered because they came to an end.
    assert.equal(hanging.received.length, 4)
    const running = workers.reduce((sum, worker) => sum + worker.countRunning(), 0)
    assert(running >= 4, `${running}`)
    await hanging.close()
    await Promise.all(workers.map((worker) => worker.close()))
    await quick.close()
    assert.equal(quick.received.length, 30)
  })

  test('has no more under way than it may, and delivers each once however many workers there are', async () => {
    let most = 0
    const receivers = await Promise.all([1, 2, 3, 4].map(() => openReceiver(fine)))
    for (const { url } of receivers) await addMany(url, 25)
    const workers = [openWorker({ concurrency: 3 }), openWorker({ concurrency: 3 })]
    const countReceived = () => receivers.reduce((sum, { received }) => sum + received.length, 0)
    await waitUntil('all are delivered', () => {
      most = Math.max(most, ...workers.map((worker) => worker.countRunning()))
      return countReceived() >= 100
    })
    await Promise.all(workers.map((worker) => worker.close()))
    for (const { received, close } of receivers) {
      assert.equal(new Set(received.map(({ headers }) => headers['webhook-id'])).size, 25)
      assert.equal(received.length, 25)
      await close()
    }
    assert(most >= 1 && most <= 3, `${most}`)
  })

  test('takes over what a killed process had, when its lease is over', async () => {
    const receiver = await openReceiver(fine)
    await deliveries.add(receiver.url)
    const [lost] = await deliveries.store.claim({ limit: 1, perHost: 4, leaseMs: 60_000 })
    assert(lost !== undefined)
    const worker = openWorker()
    worker.poke()
    await deliveries.endLeases()
    await waitUntil('the delivery', () => receiver.received.length === 1)
    await worker.close()
    await receiver.close()
    assert.equal(receiver.received[0]?.headers['webhook-id'], lost.id)
    const attempt = { status: 200, durationMs: 1, answer: '' }
    assert.equal(await deliveries.store.recordAttempt(lost, attempt, { state: 'delivered' }, 1000), false)
  })
})

describe('the delivery worker, on a clock that the test moves', () => {
  const turn = () => new Promise(setImmediate)

  /** A worker on a store in memory, which counts looks and claims; `dueInMs` is when the next delivery is due. */
  function openOnClock(t: TestContext, change: Partial<Parameters<typeof openDeliveryWorker>[0]> = {}) {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    const state = { looks: 0, claims: 0, dueInMs: undefined as number | undefined }
    const store = {
      async claim(): Promise<ClaimedDelivery[]> {
        state.claims++
        return []
      },
      async findNextDueMs() {
        state.looks++
        return state.dueInMs
      },
    }
    const worker = open({ store, deliver: async () => newDelivered(), log, ...change })
    const tick = async (ms: number) => {
      t.mock.timers.tick(ms)
      await turn()
    }
    return { worker, state, tick }
  }

  test('polls every second, when the next delivery is due, and every 250 ms while a host has all its places', async (t) => {
    const { worker, state, tick } = openOnClock(t)
    const dues: [dueInMs: number | undefined, pollMs: number][] = [
      [undefined, 1000],
      [5000, 1000],
      [300, 300],
      [-1000, 250],
    ]
    for (const [dueInMs, pollMs] of dues) {
      await turn()
      state.dueInMs = dueInMs
      worker.poke()
      await turn()
      const before = { ...state }
      await tick(pollMs - 1)
      assert.equal(state.looks, before.looks, `${dueInMs}`)
      await tick(1)
      assert.ok(state.looks > before.looks, `${dueInMs}`)
      const isDue = dueInMs !== undefined && dueInMs <= 0
      assert.equal(state.claims, before.claims + (isDue ? 1 : 0), 'an idle worker claims only what is due')
    }
  })

  test('finishes what is under way when it is closed, and starts nothing', async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const claim = t.mock.fn(async () => (claim.mock.callCount() === 0 ? [newClaimed('one'), newClaimed('two')] : []))
    const store = { claim, findNextDueMs: async () => undefined }
    const { worker } = openOnClock(t, { store, deliver: () => promise.then(newDelivered) })
    await turn()
    assert.equal(worker.countRunning(), 2)
    let isClosed = false
    const closing = worker.close().then(() => {
      isClosed = true
    })
    const before = claim.mock.callCount()
    worker.poke()
    await turn()
    assert.equal(isClosed, false)
    resolve()
    await closing
    assert.equal(worker.countRunning(), 0)
    assert.equal(claim.mock.callCount(), before)
  })

  test('logs once that attempts cannot be recorded, and goes on', async (t) => {
    const lines: { level: number; msg: string }[] = []
    const loud = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
    const claim = t.mock.fn(async () => (claim.mock.callCount() === 0 ? [newClaimed('one'), newClaimed('two')] : []))
    const deliver: Deliver = () => Promise.reject(new Error('the attempt cannot be recorded'))
    const store = { claim, findNextDueMs: async () => undefined }
    const { tick } = openOnClock(t, { store, deliver, log: loud })
    await turn()
    await tick(1000)
    assert.deepEqual(
      lines.map(({ level, msg }) => [level, msg]),
      [
        [50, 'cannot process webhook deliveries; retrying'],
        [30, 'webhook deliveries are processed again'],
      ],
    )
  })
})

const newClaimed = (id: string): ClaimedDelivery => ({
  id,
  token: id,
  accountId: id,
  url: 'https://example.com/',
  body: '{}',
  attempts: 0,
  secrets: ['secret'],
})

const newDelivered = (): Awaited<ReturnType<Deliver>> => ({
  attempt: { status: 200, durationMs: 1, answer: '' },
  outcome: { state: 'delivered' },
  isRecorded: true,
  fault: undefined,
})
