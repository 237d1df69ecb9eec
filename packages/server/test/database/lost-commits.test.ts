import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import { openDatabaseProxy } from '../../../../acceptance/support/tcp-proxy.ts'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { type Database, openDatabase } from '../../src/database/open-database.ts'
import type { AdmissionCall } from '../../src/domain/ports/admission-gate.ts'
import { Problem } from '../../src/domain/problem.ts'
import { silentLog } from '../support/silent-log.ts'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

/** `words` occur in the last message before the commit; the proxy drops everything after it. */
type Way = { name: string; words: string; toCall(keyDigest: string): AdmissionCall }
type Proxy = Awaited<ReturnType<typeof openDatabaseProxy>>

describe('a database that is lost', () => {
  let stores: TestStores & { database: { url: string } }
  let proxy: Proxy
  let far: Database
  before(async () => {
    stores = (await openTestStores()) as typeof stores
    proxy = await openDatabaseProxy(stores.database.url)
    far = await openDatabase({ url: proxy.url, connections: 4, log: silentLog })
  })
  after(async () => {
    proxy.setMode('pass')
    await far.close()
    await proxy.close()
    await stores.close()
  })

  afterEach(async () => {
    proxy.setMode('pass')
    await waitUntil('the database to be back', () => !far.watch.isUnavailable())
  })

  const newGate = () =>
    makeAdmissionGate({ pool: far.pool, isUnavailable: far.watch.isUnavailable, onOutage: far.watch.reportError })

  const waysToCharge: Way[] = [
    {
      name: 'a charge',
      words: 'charge-one-key',
      toCall: (keyDigest) => ({ keyDigest, countsRequest: false, scan: newTestScan() }),
    },
    {
      name: 'a charge with its request',
      words: 'charge-one-key',
      toCall: (keyDigest) => ({ keyDigest, countsRequest: true, scan: newTestScan() }),
    },
    {
      name: 'a job',
      words: 'charge-one-key',
      toCall: (keyDigest) => ({
        keyDigest,
        countsRequest: false,
        scan: newTestScan({ mode: 'async' }),
        job: { queue: 'any', source: { at: 'url', url: 'http://example.com/' }, callbackUrl: null },
      }),
    },
    {
      name: 'a scan with an idempotency key',
      words: 'enqueue-scans',
      toCall: (keyDigest) => ({
        keyDigest,
        countsRequest: false,
        scan: newTestScan(),
        idempotency: { operation: 'test', key: randomUUID(), fingerprint: 'ab' },
      }),
    },
  ]
  for (const { name, words, toCall } of waysToCharge) {
    test(`${name} whose commit was not answered is repeated, and charged once`, async () => {
      const { digest, id } = await stores.register()
      const gate = newGate()
      assert.equal((await gate.admit(toCall(digest))).outcome, 'admitted')
      proxy.muteAfter(words)
      const answered = gate.admit(toCall(digest))
      await waitUntil('the charge to be committed', async () => (await stores.getBalance(id))?.debits === 2)
      proxy.setMode('pass')
      assert.equal((await answered).outcome, 'admitted')
      const balance = await stores.getBalance(id)
      assert.deepEqual([balance?.debits, balance?.scans], [2, 2])
      assert.equal(balance?.remaining, balance?.ledger)
    })
  }

  test('that is away is reported to callers at once, without a charge, and its return is noticed', async () => {
    const { digest, id } = await stores.register()
    const gate = newGate()
    const ask = () => gate.admit({ keyDigest: digest, countsRequest: true, scan: newTestScan() })
    proxy.setMode('cut')
    await waitUntil('the loss to be noticed', async () => {
      await gate.admit({ keyDigest: digest, countsRequest: true }).catch(() => {})
      return far.watch.isUnavailable()
    })
    const refused = await ask().then(
      () => undefined,
      (error) => error,
    )
    assert(refused instanceof Problem)
    assert.equal(refused.refusal.kind, 'unavailable')
    assert.match((await far.watch.findFault()) ?? '', /^The database has not answered for \d+ s\. Requests get 503/)
    assert.equal((await stores.getBalance(id))?.debits, 0)

    proxy.setMode('pass')
    await waitUntil('the return', () => !far.watch.isUnavailable())
    assert.equal((await ask()).outcome, 'admitted')
    assert.equal(await far.watch.findFault(), undefined)
  })

  test('a charge whose commit stays unknown is reported as unknown', { timeout: 40_000 }, async () => {
    const { digest } = await stores.register()
    const gate = newGate()
    const ask = () => gate.admit({ keyDigest: digest, countsRequest: false, scan: newTestScan() })
    await ask()
    proxy.muteAfter('charge-one-key')
    const unknown = await ask().then(
      () => undefined,
      (error) => error,
    )
    proxy.setMode('pass')
    assert(unknown instanceof Problem)
    assert.equal(unknown.refusal.kind, 'outcome-unknown')
  })
})
