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
  return open({ store, deliver, log, clock: systemClock, ...options })
}

/** Lets everything run that waits for no timer. */
async function settle() {
  for (let i = 0; i < 10; i++) await new Promise(setImmediate)
}

/** A worker without work, on timers and a clock of the test; it has claimed once. */
async function openIdleWorker(t: TestContext, nextDue?: Date) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 })
  let claims = 0
  const store = {
    async claim() {
      claims += 1
      return []
    },
    findNextDue: async () => nextDue,
  }
  const worker = open({ store, deliver: async () => newDelivered(), log, clock: systemClock })
  await settle()
  assert.equal(claims, 1)
  return {
    worker,
    countClaims: () => claims,
    async tick(ms: number) {
      t.mock.timers.tick(ms)
      await settle()
    },
  }
}

async function addMany(url: string, count: number) {
  for (let i = 0; i < count; i++) await deliveries.add(url, `{"number":${i}}`)
}

describe('the delivery worker', () => {
  test('claims at once when it is poked, and otherwise once a second', async (t) => {
    const { worker, countClaims, tick } = await openIdleWorker(t)
    worker.poke()
    await settle()
    assert.equal(countClaims(), 2)
    await tick(999)
    assert.equal(countClaims(), 2)
    await tick(1)
    assert.equal(countClaims(), 3)
    await worker.close()
  })

  test('claims what is due later when it is due, not before and not with the next poll', async (t) => {
    const { worker, countClaims, tick } = await openIdleWorker(t, new Date(300))
    await tick(299)
    assert.equal(countClaims(), 1)
    await tick(1)
    assert.equal(countClaims(), 2)
    await worker.close()
  })

  test('claims with a pause what is due but waits for a place', async (t) => {
    const { worker, countClaims, tick } = await openIdleWorker(t, new Date(0))
    await tick(249)
    assert.equal(countClaims(), 1)
    await tick(1)
    assert.equal(countClaims(), 2)
    await worker.close()
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
    const [lost] = await deliveries.store.claim({ limit: 1, perHost: 4, leaseMs: 400 })
    assert(lost !== undefined)
    const startedAt = Date.now()
    const worker = openWorker()
    await waitUntil('it is delivered', () => receiver.received.length === 1)
    const ms = Number(receiver.received[0]?.at) - startedAt
    await worker.close()
    await receiver.close()
    assert(ms >= 350, `the lease of 400 ms was not over after ${ms} ms`)
    assert.equal(receiver.received[0]?.headers['webhook-id'], lost.id)
    const attempt = { at: new Date(), status: 200, durationMs: 1, answer: '' }
    assert.equal(await deliveries.store.recordAttempt(lost, attempt, { state: 'delivered' }, 1000), false)
  })

  test('brings what is under way to its end when it is closed, and begins nothing', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const claims: number[] = []
    const store = {
      async claim({ limit }: { limit: number }) {
        claims.push(limit)
        return claims.length === 1 ? [newClaimed('one'), newClaimed('two')] : []
      },
      findNextDue: async () => new Date(0),
    }
    const worker = open({ store, deliver: () => promise.then(newDelivered), log, clock: systemClock })
    await waitUntil('both are begun', () => worker.countRunning() === 2)
    let isClosed = false
    const closing = worker.close().then(() => {
      isClosed = true
    })
    const before = claims.length
    worker.poke()
    await new Promise((wake) => setTimeout(wake, 50))
    assert.equal(isClosed, false)
    resolve()
    await closing
    assert.equal(worker.countRunning(), 0)
    assert.equal(claims.length, before)
  })

  test('goes on when the database is back, says once that it was away, and pauses longer and longer meanwhile', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const lines: { level: number; msg: string }[] = []
    const loud = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
    let claims = 0
    let isAway = true
    const store = {
      async claim() {
        claims += 1
        if (isAway) throw new Error('the database is away')
        return claims === 100 ? [newClaimed('one')] : []
      },
      findNextDue: async () => undefined,
    }
    const deliver: Deliver = () => Promise.reject(new Error('it cannot be recorded'))
    const worker = open({ store, deliver, log: loud, clock: systemClock })
    await settle()
    for (const [n, pauseMs] of [250, 500, 1000].entries()) {
      worker.poke()
      t.mock.timers.tick(pauseMs - 1)
      await settle()
      assert.equal(claims, n + 1)
      t.mock.timers.tick(1)
      await settle()
      assert.equal(claims, n + 2)
    }
    isAway = false
    t.mock.timers.tick(2000)
    await settle()
    assert.equal(lines.length, 2)
    claims = 99
    worker.poke()
    await settle()
    assert(lines.length >= 3, 'an attempt that cannot be recorded is logged')
    worker.poke()
    await settle()
    assert(claims > 101)
    await worker.close()
    assert.deepEqual(
      lines.slice(0, 3).map(({ level, msg }) => [level, msg]),
      [
        [50, 'cannot process webhook deliveries; retrying'],
        [30, 'webhook deliveries are processed again'],
        [50, 'cannot process webhook deliveries; retrying'],
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
  attempt: { at: new Date(), status: 200, durationMs: 1, answer: '' },
  outcome: { state: 'delivered' },
  isRecorded: true,
  fault: undefined,
})
