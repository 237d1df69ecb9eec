import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { makeErrandStore } from '../../src/database/errand-store.ts'
import { maxErrandAttempts, type NewErrand } from '../../src/domain/ports/errand-store.ts'
import type { Outcome } from '../../src/domain/scans/outcome.ts'
import { openTestDatabase } from '../support/test-database.ts'

const lane = 'malware here'
const leaseMs = 30_000
const outcome: Outcome = {
  ...{ status: 'threat', signals: ['Virus:X'], metadata: { hash_sha256: 'ab' }, contentLength: 5, contentType: 'a/b' },
}

const newErrand = (change: Partial<NewErrand> = {}): NewErrand => ({
  ...{ id: randomUUID(), lane, ttlMs: 60_000 },
  source: { at: 'row', sealed: Buffer.from('sealed') },
  asked: {
    ...{ kind: 'malware', contentName: 'naïve "name"', flagsSexy: true, accountId: null },
    known: { bytes: 5, sha1: 'cd', sha256: 'ab' },
  },
  ...change,
})

describe('an errand', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  const open = (lanes = [lane]) => makeErrandStore({ pool: database.pool, lanes })
  let errands: ReturnType<typeof open>
  before(async () => {
    database = await openTestDatabase()
    errands = open()
  })
  beforeEach(() => database.pool.query('truncate errands'))
  after(() => database.drop())

  const claimOne = async () => {
    const [claimed] = await errands.claim(1, leaseMs)
    assert.ok(claimed !== undefined)
    return claimed
  }
  const endLeases = () => database.pool.query(`update errands set held_until = now() - interval '1 ms'`)

  test('reaches its worker as it was asked, and its end reaches who asked, once', async () => {
    const sources = [
      { at: 'row' as const, sealed: Buffer.from([0, 255, 7]) },
      { at: 'storage' as const, key: 'k' },
      { at: 'url' as const, url: 'https://a.test/x' },
      { at: 'row' as const, sealed: Buffer.alloc(65_000, 9) },
    ]
    const asked = sources.map((source) => newErrand({ source }))
    await Promise.all(asked.map(errands.add))
    const claimed = await errands.claim(10, leaseMs)
    for (const { id, source, asked: what } of asked) {
      const found = claimed.find(({ lease }) => lease.id === id)
      assert.deepEqual([found?.source, found?.asked], [source, what])
    }
    const [first, second] = claimed
    assert.ok(first !== undefined && second !== undefined)
    assert.equal(await errands.settle(first.lease, { outcome }), true)
    assert.equal(await errands.settle(second.lease, { failure: 'busy' }), true)
    assert.deepEqual(await errands.take(first.lease.id), { state: 'done', outcome })
    assert.deepEqual(await errands.take(first.lease.id), { state: 'missing' })
    assert.deepEqual(await errands.take(second.lease.id), { state: 'failed', failure: 'busy' })
  })

  test('is taken by one of many who claim at once', async () => {
    const ids = Array.from({ length: 60 }, () => randomUUID())
    await Promise.all(ids.map((id) => errands.add(newErrand({ id }))))
    const claims = await Promise.all(Array.from({ length: 12 }, () => open().claim(10, leaseMs)))
    const more = await errands.claim(60, leaseMs)
    const claimed = [...claims.flat(), ...more].map(({ lease }) => lease.id)
    assert.deepEqual(claimed.sort(), ids.sort())
  })

  test('of another lane is left to others', async () => {
    await errands.add(newErrand({ lane: 'nsfw_image here' }))
    assert.deepEqual(await errands.claim(1, leaseMs), [])
    assert.equal((await open(['nsfw_image here']).claim(1, leaseMs)).length, 1)
  })

  test('whose worker died is taken over, and the dead one cannot end it', async () => {
    const errand = newErrand()
    await errands.add(errand)
    const { lease: stale } = await claimOne()
    assert.deepEqual(await errands.claim(1, leaseMs), [], 'not while it lives')
    await endLeases()
    const { lease } = await claimOne()
    assert.deepEqual(await errands.extend([stale, lease], leaseMs), [lease])
    assert.equal(await errands.settle(stale, { outcome }), false)
    await errands.giveBack(stale)
    const news = await errands.take(errand.id)
    assert.ok(news.state === 'open' && news.attempts === 2 && news.freeMs < 0)
  })

  test('is not given to more workers than may die of it', async () => {
    const { id } = newErrand()
    await errands.add(newErrand({ id }))
    for (let i = 0; i < maxErrandAttempts; i++) {
      await claimOne()
      await endLeases()
    }
    assert.deepEqual(await errands.claim(1, leaseMs), [])
    const news = await errands.take(id)
    assert.ok(news.state === 'open' && news.attempts === maxErrandAttempts && news.freeMs > 0)
  })

  test('that is given back can be taken at once, as if it had not been', async () => {
    const { id } = newErrand()
    await errands.add(newErrand({ id }))
    await errands.giveBack((await claimOne()).lease)
    const news = await errands.take(id)
    assert.ok(news.state === 'open' && news.attempts === 0)
    await claimOne()
  })

  test('that was removed is nobody’s: its worker learns so and can end nothing', async () => {
    await errands.add(newErrand())
    const { lease } = await claimOne()
    await errands.remove(lease.id)
    assert.deepEqual(await errands.extend([lease], leaseMs), [])
    assert.equal(await errands.settle(lease, { outcome }), false)
  })

  test('that nobody waits for any more is forgotten, with where its content lies', async () => {
    const source = { at: 'storage' as const, key: 'old' }
    await errands.add(newErrand({ source, ttlMs: -1 }))
    await errands.add(newErrand({ source: { at: 'storage', key: 'new' } }))
    assert.deepEqual(await errands.listNeeded(['old', 'new', 'other']).then((keys) => keys.sort()), ['new', 'old'])
    assert.equal((await errands.claim(5, leaseMs)).length, 1, 'nor is it begun')
    assert.deepEqual(await errands.deleteExpired(), [source])
    assert.deepEqual(await errands.deleteExpired(), [])
    assert.deepEqual(await errands.listNeeded(['old', 'new']), ['new'])
  })
})
