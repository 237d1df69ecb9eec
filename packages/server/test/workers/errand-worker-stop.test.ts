import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import { makeErrandStore } from '../../src/database/errand-store.ts'
import type { ClaimedErrand, ErrandStore } from '../../src/domain/ports/errand-store.ts'
import { openErrandWorker } from '../../src/workers/errand-worker.ts'
import { silentLog as log, openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'

const leaseMs = 60_000
const lane = 'malware anywhere'

describe('a worker of errands that is stopped', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let errands: ErrandStore
  before(async () => {
    database = await openTestDatabase()
    errands = makeErrandStore({ pool: database.pool, lanes: [lane] })
  })
  afterEach(() => database.pool.query('truncate errands'))
  after(() => database.drop())

  const told: string[] = []
  const wakeUps = { tell: (topic: string) => void told.push(topic), on: () => {}, isListening: () => true }
  const claimNow = () => errands.claim(10, leaseMs)

  async function ask(): Promise<string> {
    const id = randomUUID()
    const asked = { kind: 'malware' as const, contentName: null, flagsSexy: true, accountId: randomUUID(), known: null }
    await errands.add({ id, lane, source: { at: 'url', url: 'http://example.com/' }, asked, ttlMs: 60_000 })
    return id
  }

  test('gives back what does not end in time: another has it at once, as if it had not been tried', async () => {
    const id = await ask()
    const begun: ClaimedErrand[] = []
    const { promise: goOn, resolve: wake } = Promise.withResolvers<void>()
    let wasOurs: boolean | undefined
    const worker = openErrandWorker({
      ...{ errands, wakeUps, concurrency: 4, log, leaseMs },
      async run(errand) {
        begun.push(errand)
        await goOn
        wasOurs = await errands.settle(errand.lease, { failure: 'down' })
      },
    })
    await waitFor(() => begun.length === 1)
    assert.deepEqual(await claimNow(), [], 'it is taken')
    await worker.close(10)

    assert.deepEqual(told, ['errands'], 'others hear of it')
    const [errand] = await claimNow()
    assert.equal(errand?.lease.id, id)
    const { rows } = await database.pool.query('select attempts from errands')
    assert.deepEqual(rows, [{ attempts: 1 }])
    wake()
    await waitFor(() => wasOurs !== undefined)
    assert.equal(wasOurs, false, 'and the first one can say nothing any more')
  })

  test('keeps nothing that it claimed too late', async () => {
    const id = await ask()
    const { promise: mayClaim, resolve: letClaim } = Promise.withResolvers<void>()
    const begun: string[] = []
    const worker = openErrandWorker({
      errands: {
        ...errands,
        async claim(limit, ms) {
          await mayClaim
          return errands.claim(limit, ms)
        },
      },
      ...{ wakeUps, concurrency: 4, log, leaseMs },
      run: async ({ lease }) => void begun.push(lease.id),
    })
    worker.stop()
    letClaim()
    await worker.close(1000)
    assert.deepEqual(begun, [])
    const [errand] = await claimNow()
    assert.equal(errand?.lease.id, id)
  })
})
