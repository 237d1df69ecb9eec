import assert from 'node:assert/strict'
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { describe, test } from 'node:test'
import { newWebhookSecret } from '../../src/domain/accounts/keys.ts'
import type { Attempt, ClaimedDelivery, NextDeliveryState } from '../../src/domain/ports/delivery-store.ts'
import { makeDeliver, sendSample } from '../../src/domain/webhooks/deliver.ts'
import { newLoopbackSender, openRawReceiver, openReceiver, type Received, type Reply } from './receivers.ts'

const now = new Date('2027-03-01T12:00:00Z')
const sender = newLoopbackSender()

type BatchAnswer = { id: string; token: string; attempt: Attempt; outcome: NextDeliveryState; pauseAfterMs: number }

/** Records what is completed; the first `failures` times the database is away. */
function newSystemStatus({ failures = 0, isOurs = true, at = now, attemptMs = 2000 } = {}) {
  const completed: BatchAnswer[] = []
  let tries = 0
  const store = {
    async recordAttempt(...[{ id, token }, attempt, outcome, pauseAfterMs]: Parameters<Settle>) {
      tries += 1
      if (tries <= failures) throw new Error('the database is away')
      completed.push({ id, token, attempt, outcome, pauseAfterMs })
      return isOurs
    },
  }
  const deliver = makeDeliver({ sender, store, clock: { now: () => at }, random: () => 0.5, attemptMs })
  return { deliver, completed, countTries: () => tries }
}

type Settle = Parameters<typeof makeDeliver>[0]['store']['recordAttempt']

const newClaimed = (url: string, change: Partial<ClaimedDelivery> = {}): ClaimedDelivery => ({
  id: randomUUID(),
  token: randomUUID(),
  accountId: randomUUID(),
  url,
  body: '{"id":"1","content_name":"ä€😀.txt"}',
  attempts: 0,
  secrets: [newWebhookSecret()],
  ...change,
})

/** Delivers once to a receiver that answers like this. */
async function deliverTo(reply: Reply, change: Partial<ClaimedDelivery> = {}) {
  const receiver = await openReceiver(() => reply)
  const systemStatus = newSystemStatus({ attemptMs: reply === 'never' ? 200 : 2000 })
  const claimed = newClaimed(receiver.url, change)
  const delivered = await systemStatus.deliver(claimed)
  await receiver.close()
  const [completed] = systemStatus.completed
  assert(completed !== undefined)
  assert.deepEqual([completed.id, completed.token], [claimed.id, claimed.token])
  return { ...completed, delivered, received: receiver.received }
}

const getPauseMs = (outcome: NextDeliveryState) => (outcome.state === 'pending' ? outcome.pauseMs : undefined)

/** All that the interface says of a receiver: an HMAC of the payload with the webhook secret, in one header. */
const isGenuine = ({ headers, body }: Received, secret: string) => {
  const expected = createHmac('sha256', secret).update(body).digest('hex')
  const given = String(headers['x-api-signature'])
  return given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected))
}

/** All that Standard Webhooks says of one, with a secret in its form. */
function isGenuineByStandard({ headers, body }: Received, secret: string, at: Date): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (Math.abs(Number(timestamp) - at.getTime() / 1000) > 300) return false
  const hmac = createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
  const expected = hmac.update(`${id}.${timestamp}.${body.toString()}`).digest('base64')
  return String(signatures)
    .split(' ')
    .some((signature) => signature === `v1,${expected}`)
}

describe('a delivery', () => {
  test('that gets a 2xx is delivered, and its attempt is logged', async () => {
    const { attempt, outcome, pauseAfterMs, delivered } = await deliverTo({ status: 200, body: 'thanks\0 ä' })
    assert.deepEqual(outcome, { state: 'delivered' })
    assert.deepEqual([attempt.status, attempt.answer], [200, 'thanks\u{fffd} ä'])
    assert(attempt.durationMs >= 0 && attempt.durationMs < 2000)
    assert.equal(pauseAfterMs, 5 * 24 * 3_600_000)
    assert(delivered.isRecorded)
    assert.deepEqual((await deliverTo({ status: 204 })).outcome, { state: 'delivered' })
  })

  test('is verified by a receiver that knows nothing but the specification, and no other secret passes', async () => {
    const secret = newWebhookSecret()
    const { received } = await deliverTo({ status: 200 }, { secrets: [secret] })
    const [request] = received
    assert(request !== undefined)
    assert(isGenuine(request, secret))
    assert(isGenuineByStandard(request, secret, now))
    assert(!isGenuine(request, newWebhookSecret()))
    assert(!isGenuineByStandard(request, newWebhookSecret(), now))
    const forged = { ...request, body: Buffer.from(request.body.toString().replace('1', '2')) }
    assert(!isGenuine(forged, secret))
    assert(!isGenuineByStandard(forged, secret, now))
  })

  test('is verified with either secret after a rotation', async () => {
    const [fresh, old] = [newWebhookSecret(), newWebhookSecret()]
    const { received } = await deliverTo({ status: 200 }, { secrets: [fresh, old] })
    const [request] = received
    assert(request !== undefined)
    for (const secret of [fresh, old]) assert(isGenuineByStandard(request, secret, now))
    assert(isGenuine(request, fresh))
  })

  test('sends the same bytes and the same webhook-id with every attempt, and the time of each', async () => {
    const receiver = await openReceiver((_, index) => ({ status: index < 3 ? 500 : 200 }))
    const claimed = newClaimed(receiver.url)
    for (let attempts = 0; attempts < 4; attempts++) {
      const systemStatus = newSystemStatus({ at: new Date(now.getTime() + attempts * 60_000) })
      await systemStatus.deliver({ ...claimed, attempts, token: randomUUID() })
      assert.equal(systemStatus.completed[0]?.outcome.state, attempts < 3 ? 'pending' : 'delivered')
    }
    await receiver.close()
    const distinct = (values: unknown[]) => new Set(values.map(String)).size
    assert.equal(receiver.received.length, 4)
    for (const { body } of receiver.received) assert(body.equals(Buffer.from(claimed.body)))
    assert.deepEqual(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])), new Set([claimed.id]))
    assert.equal(distinct(receiver.received.map(({ headers }) => headers['x-api-signature'])), 1)
    assert.equal(distinct(receiver.received.map(({ headers }) => headers['webhook-timestamp'])), 4)
    assert.equal(distinct(receiver.received.map(({ headers }) => headers['webhook-signature'])), 4)
  })

  test('that is refused or redirected is tried again as the schedule says, and dead after the last attempt', async () => {
    const failed = await deliverTo({ status: 500, body: 'sorry' })
    assert.equal(getPauseMs(failed.outcome), 5000)
    assert.deepEqual([failed.attempt.status, failed.attempt.answer], [500, 'sorry'])
    const later = await deliverTo({ status: 500 }, { attempts: 3 })
    assert.equal(getPauseMs(later.outcome), 2 * 3_600_000)
    const redirected = await deliverTo({ status: 307, headers: { location: '/hook' } })
    assert.equal(getPauseMs(redirected.outcome), 5000)
    assert.equal(redirected.attempt.answer, 'Redirects are not followed.')
    assert.equal(redirected.received.length, 1)
    assert.deepEqual((await deliverTo({ status: 500 }, { attempts: 7 })).outcome, { state: 'dead' })
  })

  test('is stopped by a 410 and put off by a 429', async () => {
    assert.deepEqual((await deliverTo({ status: 410, body: 'gone' })).outcome, { state: 'stopped' })
    const headers = { 'retry-after': '500' }
    const busy = await deliverTo({ status: 429, headers }, { attempts: 1 })
    assert.equal(getPauseMs(busy.outcome), 500_000)
    assert.equal(getPauseMs((await deliverTo({ status: 429 })).outcome), 60_000)
  })

  test('without an answer is logged with what went wrong', async () => {
    const { attempt, outcome } = await deliverTo('never')
    assert.deepEqual([attempt.status, attempt.answer], [null, 'The receiver did not answer within 0.2 seconds.'])
    assert(attempt.durationMs >= 190)
    assert.equal(outcome.state, 'pending')
    const receiver = await openRawReceiver((socket) => socket.resetAndDestroy())
    const systemStatus = newSystemStatus()
    await systemStatus.deliver(newClaimed(receiver.url, { attempts: 7 }))
    await receiver.close()
    assert.deepEqual(systemStatus.completed[0]?.outcome, { state: 'dead' })
    assert.match(systemStatus.completed[0]?.attempt.answer ?? '', /^The host closed the connection/)
  })

  test('is recorded when the database is back, without a second request', async () => {
    const receiver = await openReceiver(() => ({ status: 200 }))
    const systemStatus = newSystemStatus({ failures: 2 })
    assert((await systemStatus.deliver(newClaimed(receiver.url))).isRecorded)
    await receiver.close()
    assert.equal(systemStatus.countTries(), 3)
    assert.equal(systemStatus.completed.length, 1)
    assert.equal(receiver.received.length, 1)
  })

  test('that somebody else has by then is not claimed to be recorded', async () => {
    const receiver = await openReceiver(() => ({ status: 200 }))
    const systemStatus = newSystemStatus({ isOurs: false })
    assert.equal((await systemStatus.deliver(newClaimed(receiver.url))).isRecorded, false)
    await receiver.close()
    assert.equal(systemStatus.countTries(), 1)
  })
})

test('a sample is signed like a delivery, and is a scan result with all that receivers expect', async () => {
  const secret = newWebhookSecret()
  const receiver = await openReceiver(() => ({ status: 202, body: 'seen' }))
  const sent = await sendSample({ sender, clock: { now: () => now } }, { url: receiver.url, secrets: [secret] })
  await receiver.close()
  const [request] = receiver.received
  assert(request !== undefined)
  assert(isGenuine(request, secret))
  assert(isGenuineByStandard(request, secret, now))
  assert.deepEqual([sent.status, sent.answer, sent.body], [202, 'seen', request.body.toString()])
  for (const [name, value] of Object.entries(sent.headers)) assert.equal(request.headers[name.toLowerCase()], value)
  const { id, metadata, ...result } = JSON.parse(sent.body)
  assert.match(id, /^[0-9a-f-]{36}$/)
  assert.match(metadata.hash_sha256, /^[0-9a-f]{64}$/)
  assert.deepEqual(result, {
    scan_type: 'malware',
    status: 'clean',
    content_length: 33,
    content_type: 'text/plain',
    signals: [],
    created_at: now.toISOString(),
    completed_at: now.toISOString(),
    content_name: 'webhook-sample.txt',
  })
})
