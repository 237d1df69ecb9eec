import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { makeDeliveryStore } from '../../src/database/delivery-store.ts'
import { makeOperations } from '../../src/database/operations.ts'
import type { Attempt, ClaimedDelivery, NextDeliveryState } from '../../src/domain/ports/delivery-store.ts'
import { leaseMs, openTestJobs, type TestJobs } from './test-jobs.ts'

const pauseAfterMs = 5 * 86_400_000
const claimable = { limit: 100, perHost: 4, leaseMs }
const toAttempt = (change: Partial<Attempt> = {}): Attempt => ({
  status: 500,
  durationMs: 12.4,
  answer: 'no',
  ...change,
})
const later = (ms: number): NextDeliveryState => ({ state: 'pending', pauseMs: ms })

describe('deliveries', () => {
  let stores: TestJobs
  let accountId: string
  before(async () => {
    stores = await openTestJobs()
    accountId = (await stores.register()).id
  })
  beforeEach(() => stores.clear())
  after(() => stores.close())

  async function post(url: string, count = 1): Promise<string[]> {
    const { rows } = await stores.pool.query<{ id: string }>(
      `insert into deliveries (id, scan_id, account_id, url, host, body)
       select gen_random_uuid(), gen_random_uuid(), $1, $2, $3, '{}' from generate_series(1, $4) returning id`,
      [accountId, url, new URL(url).host, count],
    )
    return rows.map(({ id }) => id)
  }
  const claim = () => stores.deliveries.claim(claimable)
  const recordAttempt = (claimed: ClaimedDelivery, outcome: NextDeliveryState, attempt: Partial<Attempt> = {}) =>
    stores.deliveries.recordAttempt(claimed, toAttempt(attempt), outcome, pauseAfterMs)
  const makeDue = () => stores.pool.query(`update deliveries set next_at = now() where next_at is not null`)
  const toIds = (claimed: { id: string }[]) => claimed.map(({ id }) => id)
  /** Fails one delivery of the endpoint so that it is paused. */
  async function pause(url: string) {
    for (const daysAgo of [6, 0.5]) {
      const [id] = await post(url)
      const claimed = (await claim()).find((one) => one.id === id)
      assert.ok(claimed !== undefined)
      await recordAttempt(claimed, { state: 'dead' })
      await ageAttempt(claimed.id, daysAgo)
    }
  }
  /** Moves the last attempt at a delivery, and what its endpoint knows of it, back in time. */
  async function ageAttempt(id: string, days: number) {
    await stores.pool.query(
      `with aged as (
         update deliveries set last_attempt_at = last_attempt_at - $2 * interval '1 day' where id = $1
         returning account_id, url, last_attempt_at as at
       )
       update webhook_endpoints as e
       set failing_since = least(failing_since, case when failing_since is not null then at end),
         last_success_at = case when failing_since is null then at else last_success_at end
       from aged where e.account_id = aged.account_id and e.url = aged.url`,
      [id, days],
    )
  }
  const findEndpoint = async (url: string) =>
    (await stores.deliveries.listEndpoints({ accountId })).find((endpoint) => endpoint.url === url)

  test('are claimed with all that an attempt needs, and not again before the lease ends', async () => {
    const [id] = await post('https://a.test/x')
    const [claimed] = await claim()
    const [secret] = await stores.accounts.listWebhookSecrets(accountId)
    const { token, ...rest } = claimed ?? {}
    assert.deepEqual(rest, { id, accountId, url: 'https://a.test/x', body: '{}', attempts: 0, secrets: [secret] })
    assert.deepEqual(await claim(), [])
    await makeDue()
    const [again] = await claim()
    assert.equal(again?.id, id)
    assert.notEqual(again?.token, token)
  })

  test('are signed with the previous secret as well until it expires', async () => {
    const { id } = await stores.register()
    const days = (n: number) => n * 86_400_000
    const listSecrets = async () => {
      await stores.pool.query(
        `insert into deliveries (id, scan_id, account_id, url, host, body) values ($1, $1, $2, 'https://s.test/', 's.test', '')`,
        [randomUUID(), id],
      )
      const secrets = (await claim())[0]?.secrets
      await stores.clear()
      return secrets
    }
    await stores.accounts.rotateWebhookSecret(id, 'second', days(1))
    assert.equal((await listSecrets())?.length, 2)
    await stores.accounts.rotateWebhookSecret(id, 'third', days(1))
    assert.deepEqual(await listSecrets(), ['third', 'second'])
    await stores.accounts.rotateWebhookSecret(id, 'fourth', days(-1))
    assert.deepEqual(await listSecrets(), ['fourth'])
  })

  test('of one host are claimed up to its limit, over all processes that claim at the same time', async () => {
    await post('https://slow.test/a', 50)
    await post('https://slow.test/b', 50)
    await post('https://other.test:8443/', 3)
    const replicas = [
      stores.deliveries,
      makeDeliveryStore(stores),
      makeDeliveryStore(stores),
      makeDeliveryStore(stores),
    ]
    for (let round = 0; round < 5; round++) {
      const lent = (await Promise.all(replicas.map((store) => store.claim(claimable)))).flat()
      const ofSlow = lent.filter(({ url }) => url.startsWith('https://slow'))
      assert.equal(ofSlow.length, 4)
      assert.equal(lent.length, round === 0 ? 7 : 4)
      assert.deepEqual(await stores.deliveries.claim(claimable), [])
      await recordAttempt(ofSlow[0] as ClaimedDelivery, { state: 'delivered' })
      assert.equal((await stores.deliveries.claim(claimable)).length, 1, 'a place is free again')
      await stores.pool.query(
        `update deliveries set lease_token = null, next_at = now() where host = 'slow.test' and lease_token is not null`,
      )
    }
  })

  test('of a host with very many do not delay those of another', async () => {
    await post('https://many.test/', 2000)
    const [id] = await post('https://one.test/')
    assert.ok(toIds(await stores.deliveries.claim({ limit: 2, perHost: 100, leaseMs })).includes(id ?? ''))
    const [other] = await post('https://two.test/')
    const one = [
      await stores.deliveries.claim({ limit: 1, perHost: 100, leaseMs }),
      await stores.deliveries.claim({ limit: 1, perHost: 100, leaseMs }),
    ]
    assert.ok(toIds(one.flat()).includes(other ?? ''), 'receivers take turns')
  })

  test('are logged attempt by attempt, and end in the recorded state', async () => {
    const [id = ''] = await post('https://a.test/')
    const [first] = await claim()
    assert.ok(first !== undefined)
    assert.equal(await recordAttempt(first, later(50_000), { answer: 'no\0\ud83d', status: null }), true)
    assert.deepEqual(await claim(), [])
    const dueMs = await stores.deliveries.findNextDueMs()
    assert.ok(dueMs !== undefined && dueMs > 0 && dueMs <= 50_000, String(dueMs))
    await makeDue()
    const [second] = await claim()
    assert.ok(second !== undefined && second.attempts === 1)
    assert.equal(await recordAttempt(second, { state: 'delivered' }, { status: 204, answer: '' }), true)
    const found = await stores.deliveries.findDelivery(id)
    assert.deepEqual([found?.state, found?.attempts, found?.nextAt, found?.lastStatus], ['delivered', 2, null, 204])
    assert.deepEqual(
      found?.log.map(({ at, ...rest }) => rest),
      [
        { status: null, durationMs: 12, answer: 'no\ufffd\ufffd' },
        { status: 204, durationMs: 12, answer: '' },
      ],
    )
    assert.equal(await stores.deliveries.findNextDueMs(), undefined)
    assert.equal(await stores.deliveries.findDelivery(randomUUID()), undefined)
  })

  test('cannot be completed with a stale lease, also in a batch of valid ones', async () => {
    const ids = await post('https://a.test/', 3)
    const stale = await claim()
    await makeDue()
    const fresh = await makeDeliveryStore(stores).claim({ ...claimable, limit: 1 })
    const results = await Promise.all(stale.map((one) => recordAttempt(one, { state: 'dead' })))
    assert.equal(results.filter(Boolean).length, 2)
    const [mine] = fresh
    assert.ok(mine !== undefined)
    assert.deepEqual((await stores.deliveries.findDelivery(mine.id))?.log, [])
    assert.equal(await recordAttempt(mine, { state: 'delivered' }), true)
    assert.equal(await recordAttempt(mine, { state: 'dead' }), false)
    const states = (await stores.deliveries.listDeliveries({ limit: 10 })).map(({ state }) => state)
    assert.deepEqual(states.toSorted(), ['dead', 'dead', 'delivered'])
    assert.equal(ids.length, 3)
  })

  test('stop for an endpoint that has only failed for five days, and for no other', async () => {
    const url = 'https://down.test/a'
    await pause(url)
    assert.ok((await findEndpoint(url))?.pausedAt instanceof Date)
    const [held] = await post(url)
    const [neighbour] = await post('https://down.test/b')
    assert.deepEqual(toIds(await claim()), [neighbour])
    assert.equal((await findEndpoint(url))?.waiting, 1)
    assert.equal((await stores.deliveries.countDeliveries()).waiting, 1)
    assert.equal(await stores.deliveries.resumeEndpoint(accountId, url), true)
    assert.equal(await stores.deliveries.resumeEndpoint(accountId, url), false)
    const [resumed] = await claim()
    assert.equal(resumed?.id, held)
    await recordAttempt(resumed as ClaimedDelivery, { state: 'dead' })
    assert.equal((await findEndpoint(url))?.pausedAt, null, 'the five days begin anew')
  })

  test('continue to an endpoint that fails now and then', async () => {
    const url = 'https://shaky.test/'
    const attempts: (Date | null | undefined)[] = []
    for (const [i, daysAgo] of [6, 4, 3, 0].entries()) {
      const [id = ''] = await post(url)
      const [claimed] = await claim()
      await recordAttempt(claimed as ClaimedDelivery, { state: i === 1 ? 'delivered' : 'dead' })
      await ageAttempt(id, daysAgo)
      const { failingSince, lastSuccessAt } = (await findEndpoint(url)) ?? {}
      attempts.push(i === 1 ? lastSuccessAt : failingSince)
    }
    const endpoint = await findEndpoint(url)
    assert.deepEqual([endpoint?.failingSince, endpoint?.lastSuccessAt], [attempts[2], attempts[1]])
    assert.equal(endpoint?.pausedAt, null)
  })

  test('for a paused endpoint, however many, do not slow down others', async () => {
    await pause('https://down.test/a')
    await post('https://down.test/a', 3000)
    const [id] = await post('https://down.test/b')
    const found: string[] = []
    for (let i = 0; i < 5 && found.length === 0; i++) found.push(...toIds(await claim()))
    assert.deepEqual(found, [id])
    assert.equal((await stores.deliveries.countDeliveries()).waiting <= 2001, true)
  })

  test('are not lost when an endpoint is resumed while they are parked, alone or with its host', async () => {
    const url = 'https://down.test/'
    await pause(url)
    const replicas = [stores.deliveries, makeDeliveryStore(stores)]
    const operations = makeOperations(stores)
    const resumeHost = async () => (await operations.pauseHost('down.test', false)) === 1
    for (let round = 0; round < 40; round++) {
      await stores.pool.query('update webhook_endpoints set paused_at = now()')
      await post(url, 20)
      const resuming = round % 2 === 0 ? stores.deliveries.resumeEndpoint(accountId, url) : resumeHost()
      const lent = (await Promise.all(replicas.map((store) => store.claim({ ...claimable, perHost: 1000 })))).flat()
      assert.equal(await resuming, true)
      lent.push(...(await stores.deliveries.claim({ ...claimable, perHost: 1000 })))
      assert.equal(lent.length, 20, `round ${round}`)
    }
  })

  test('are replayed one by one, whatever their state', async () => {
    const url = 'https://a.test/'
    const [id = ''] = await post(url)
    const [claimed] = await claim()
    assert.equal(await stores.deliveries.replay({ ids: [id] }), 1)
    assert.deepEqual(await claim(), [], 'it is under way')
    await recordAttempt(claimed as ClaimedDelivery, { state: 'delivered' })
    assert.equal(await stores.deliveries.replay({ ids: [id] }), 1)
    const [again] = await claim()
    assert.deepEqual([again?.id, again?.attempts], [id, 0])
    await recordAttempt(again as ClaimedDelivery, later(60_000))
    assert.equal(await stores.deliveries.replay({ ids: [id] }), 1)
    assert.equal((await claim()).length, 1)
    assert.equal((await stores.deliveries.findDelivery(id))?.log.length, 2)
    assert.equal(await stores.deliveries.replay({ ids: [randomUUID()] }), 0)
  })

  test('are replayed many at once in one statement', async () => {
    const ids = await post('https://a.test/', 500)
    await stores.pool.query(`update deliveries set state = 'dead', next_at = null, attempts = 9`)
    const [kept = ''] = await post('https://a.test/')
    await stores.pool.query(`update deliveries set state = 'dead', next_at = null where id = $1`, [kept])
    assert.equal(await stores.deliveries.replay({ ids: [...ids, randomUUID()] }), 500)
    assert.equal((await stores.deliveries.countDeliveries()).waiting, 500)
    assert.equal((await stores.deliveries.findDelivery(kept))?.state, 'dead')
    assert.equal(await stores.deliveries.replay({ ids: [] }), 0)
  })

  test('that failed since a time are replayed together, and their endpoint with them', async () => {
    const url = 'https://down.test/'
    await pause(url)
    const [held] = await post(url)
    assert.deepEqual(await claim(), [])
    const [good] = await post('https://up.test/')
    await recordAttempt((await claim())[0] as ClaimedDelivery, { state: 'delivered' })
    const since = new Date(Date.now() - 86_400_000)
    assert.equal(await stores.deliveries.replay({ failedSince: since, accountId: randomUUID() }), 0)
    // One that died half a day ago, and the one that was put aside; not the one of six days ago.
    assert.equal(await stores.deliveries.replay({ failedSince: since, accountId }), 2)
    const claimed = toIds(await claim())
    assert.equal(claimed.length, 2)
    assert.ok(claimed.includes(held ?? '') && !claimed.includes(good ?? ''))
    assert.equal((await findEndpoint(url))?.pausedAt, null)
  })

  test('are listed by account and state, the newest first, and counted', async () => {
    const ids = []
    for (let i = 0; i < 3; i++) ids.push(...(await post('https://a.test/')))
    await stores.pool.query(`update deliveries set account_id = $1 where id = $2`, [randomUUID(), ids[0]])
    assert.deepEqual(toIds(await stores.deliveries.listDeliveries({ limit: 10 })), ids.toReversed())
    assert.deepEqual(toIds(await stores.deliveries.listDeliveries({ limit: 1 })), [ids[2]])
    assert.deepEqual(toIds(await stores.deliveries.listDeliveries({ limit: 9, accountId })), [ids[2], ids[1]])
    assert.deepEqual(await stores.deliveries.listDeliveries({ limit: 9, state: 'dead' }), [])
    const { waiting, lateSeconds } = await stores.deliveries.countDeliveries()
    assert.equal(waiting, 3)
    assert.ok(lateSeconds > 0, String(lateSeconds))
  })

  test('are listed since a time without a gap, also when a batch made hundreds at the same time', async () => {
    const ids: string[] = []
    for (let i = 0; i < 3; i++) ids.push(...(await post('https://a.test/')))
    // Copies of the first one, made in the same microsecond.
    await stores.pool.query(
      `insert into deliveries (id, scan_id, account_id, url, host, body, created_at)
       select gen_random_uuid(), scan_id, account_id, url, host, body, created_at
       from deliveries, generate_series(1, 250) where id = $1`,
      [ids[0]],
    )
    await stores.pool.query(`update deliveries set created_at = created_at - interval '1 minute'`)
    const [fresh] = await post('https://a.test/')
    await stores.pool.query(`update deliveries set created_at = now() + interval '1 minute' where id = $1`, [fresh])
    const filter = { accountId, isTest: false }
    assert.deepEqual((await stores.deliveries.listSince({ ...filter, since: undefined })).deliveries, [])
    const found: string[] = []
    let since = new Date(Date.now() - 3_600_000).toISOString()
    for (;;) {
      const { until, deliveries } = await stores.deliveries.listSince({ ...filter, since })
      if (deliveries.length === 0) break
      found.push(...toIds(deliveries))
      since = until
    }
    assert.deepEqual([found.length, new Set(found).size], [253, 253])
    assert.deepEqual(found.slice(-2), ids.slice(1))
    assert.ok(!found.includes(fresh ?? ''), 'another transaction may still commit an older one')
    assert.deepEqual(
      (await stores.deliveries.listSince({ ...filter, isTest: true, since: '2020-01-01' })).deliveries,
      [],
    )
  })

  test('are deleted with their log when they are old and done', async () => {
    const [done = ''] = await post('https://a.test/')
    await recordAttempt((await claim())[0] as ClaimedDelivery, { state: 'delivered' })
    const [waiting = ''] = await post('https://a.test/')
    await stores.pool.query(`update deliveries set created_at = '2020-01-01'`)
    await stores.pool.query(`update webhook_endpoints set last_attempt_at = '2020-01-01'`)
    const [recent = ''] = await post('https://a.test/')
    assert.equal(await stores.deliveries.deleteOld(86_400_000), 1)
    const left = toIds(await stores.deliveries.listDeliveries({ limit: 10 }))
    assert.deepEqual(left.toSorted(), [waiting, recent].toSorted())
    assert.equal(await stores.deliveries.findDelivery(done), undefined)
    const { rows } = await stores.pool.query('select from delivery_attempts')
    assert.equal(rows.length, 0)
    assert.equal(await findEndpoint('https://a.test/'), undefined)
  })

  test('are followed by the records of their receivers, also of paused ones that nothing waits for', async () => {
    const isLeft = async (url: string) => (await findEndpoint(url)) !== undefined
    const [unused, awaited, recent] = ['https://unused.test/', 'https://awaited.test/', 'https://recent.test/'] as const
    for (const url of [unused, awaited, recent]) {
      await post(url)
      await recordAttempt((await claim())[0] as ClaimedDelivery, { state: 'dead' })
    }
    await stores.pool.query(`update deliveries set created_at = '2020-01-01'`)
    await stores.pool.query(`update webhook_endpoints set last_attempt_at = '2020-01-01', paused_at = '2020-01-01'`)
    await stores.pool.query(`update webhook_endpoints set paused_at = now() where url = $1`, [recent])
    await post(awaited)
    await stores.deliveries.deleteOld(86_400_000)
    assert.deepEqual([await isLeft(unused), await isLeft(awaited), await isLeft(recent)], [false, true, true])
  })
})
