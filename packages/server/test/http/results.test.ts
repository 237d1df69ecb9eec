import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ScanKind, ScanResult } from '@assay/contract'
import type { FastifyInstance } from 'fastify'
import { makeReceiptKeyStore } from '../../src/database/secret-stores.ts'
import { makeAdmission, makeRecentCallers } from '../../src/domain/accounts/admission.ts'
import type { ReceiptKeyStore } from '../../src/domain/ports/secret-store.ts'
import { makeReceipts, verifyReceipt } from '../../src/domain/receipts.ts'
import { makeResultWaiters, makeScanning } from '../../src/domain/scans/scanning.ts'
import { makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import { registerReceiptKeys } from '../../src/http/pages.ts'
import { makeHttpServer } from '../../src/http/server.ts'
import { makeMetrics } from '../../src/runtime/metrics.ts'
import { silentLog } from '../support/silent-log.ts'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

const unused = () => {
  throw new Error('Fetching a result scans nothing')
}
const nothingToScanWith = {
  scanner: { scanContent: unused, scanUrl: unused },
  repeats: { findRepeat: unused, deleteIdempotencyKeys: unused },
  resultWaiters: makeResultWaiters(),
  fullLoad: Infinity,
  describe: unused,
  clock: { now: unused },
  region: 'test',
  reportFailure: unused,
  observeVerdict: unused,
}

const installationId = '0199a3c5-52f1-4c39-8f0e-6f1d5d0f6a3b'
const signedAt = 1_800_000_000

/** The answers that need a job in any state, which the store makes faster than engines do. */
describe('fetching a result', () => {
  let stores: TestStores
  let receiptKeys: ReceiptKeyStore
  let app: FastifyInstance
  before(async () => {
    stores = await openTestStores()
    receiptKeys = makeReceiptKeyStore({ pool: stores.database.pool, sealer: stores.sealer })
    const scanning = makeScanning({ ...nothingToScanWith, scans: stores.scans, gate: stores.gate })
    app = await makeHttpServer({
      admission: makeAdmission({
        gate: stores.gate,
        creditGate: 'all',
        recentCallers: makeRecentCallers(),
      }),
      accounts: stores.accounts,
      scanning,
      receipts: makeReceipts({
        scanning,
        keys: receiptKeys,
        clock: { now: () => new Date(signedAt * 1000) },
        publicUrl: undefined,
        getInstallationId: async () => installationId,
      }),
      submitting: { submitFile: unused, submitUrl: unused },
      deliveryFeed: { list: unused },
      contents: { newWriter: unused },
      jobContents: { newWriter: unused },
      wrongKeys: { refuseTooMany: async () => {} },
      servesApi: true,
      trustedProxies: ['192.0.2.0/24'],
      policy: makeAddressPolicy([]),
      log: silentLog,
      logRequest() {},
      metrics: makeMetrics({ region: 'test', version: '0' }),
      stopping: new AbortController().signal,
      region: 'test',
      publicUrl: undefined,
      corsOrigins: [],
      tls: undefined,
      scopes: [(scope) => registerReceiptKeys(scope, receiptKeys)],
      countRejectedRequest: () => {},
      isOutage: () => false,
      findConflict: () => undefined,
      maxConnections: 100,
      draining: new AbortController().signal,
    })
  })
  after(async () => {
    await app.close()
    await stores.close()
  })

  const complete = (id: string) =>
    stores.database.pool.query(
      `update scans set status = 'threat', completed_at = created_at, signals = '{Virus:Test}' where id = $1`,
      [id],
    )
  const fetchKeys = async () =>
    (await app.inject({ url: '/.well-known/assay-receipts.json', headers: { host: 'localhost' } })).json()

  test('nodes that need the first key for receipts at the same time create one', async () => {
    await stores.database.pool.query('delete from receipt_keys')
    assert.deepEqual(await fetchKeys(), { keys: [] })
    const keys = await Promise.all(Array.from({ length: 4 }, () => receiptKeys.getSigningKey()))
    assert.equal(new Set(keys.map(({ id }) => id)).size, 1)
    const [only] = keys
    assert.deepEqual(
      (await fetchKeys()).keys.map(({ kid }: { kid: string }) => kid),
      [only?.id],
    )
    await Promise.all([receiptKeys.rotateKey(), receiptKeys.rotateKey()])
    assert.deepEqual(
      (await receiptKeys.listKeys()).map(({ isCurrent }) => isCurrent),
      [true, false, false],
    )
    const withdrawn = only?.id ?? ''
    assert.deepEqual(
      [await receiptKeys.withdrawKey(withdrawn), await receiptKeys.withdrawKey(withdrawn)],
      [true, false],
    )
    assert.equal((await receiptKeys.listKeys()).length, 2)
  })

  test('403: a key that is restricted to networks is refused elsewhere, by the address that proxies of trust report', async () => {
    // The window does not end during the test, even if the machine stands still for minutes.
    const { id, apiKey } = await stores.register({ rate: { requests: 100, periodSeconds: 86_400 } })
    const [key] = await stores.keys.listKeys(id)
    const networks = ['10.0.0.0/8', '2001:db8::/32']
    await stores.keys.restrictKey(key?.id ?? '', { allow: null, kinds: null, networks })
    const ping = async (remoteAddress: string, forwarded?: string) =>
      app.inject({
        url: '/v1/ping',
        remoteAddress,
        headers: { host: 'localhost', 'x-api-key': apiKey, ...(forwarded && { 'x-forwarded-for': forwarded }) },
      })
    for (const [address, forwarded, status] of [
      ['10.1.2.3', undefined, 200],
      ['::ffff:10.1.2.3', undefined, 200],
      ['2001:db8::7', undefined, 200],
      ['127.0.0.1', undefined, 403],
      ['::1', undefined, 403],
      ['192.0.2.1', '10.1.2.3', 200],
      ['192.0.2.1', '2001:DB8::7', 200],
      ['192.0.2.1', '10.1.2.3, 203.0.113.9', 403],
      // A stranger cannot choose an address, nor can anyone behind an unknown proxy.
      ['203.0.113.9', '10.1.2.3', 403],
      ['10.1.2.3', '203.0.113.9', 200],
      ['192.0.2.1', 'unknown', 403],
    ] as const)
      assert.equal((await ping(address, forwarded)).statusCode, status, `${address} ${forwarded ?? ''}`)
    const refused = await ping('203.0.113.9')
    assert.equal(refused.json().detail, 'This API key may not be used from the address 203.0.113.9.')
    assert.equal(refused.headers['x-rate-limit-remaining'], '88')
  })

  for (const [kind, root] of [
    ['malware', '/v1/malware'],
    ['nsfw_image', '/v1/nsfw/images'],
  ] as [ScanKind, string][]) {
    const get = (id: string, apiKey: string, more = {}) =>
      app.inject({ url: `${root}/${id}`, headers: { host: 'localhost', 'x-api-key': apiKey, ...more } })

    test(`200: a ${kind} job of the account comes back whole, pending and completed`, async () => {
      const { digest, apiKey } = await stores.register()
      const scan = newTestScan({ kind, contentName: 'résumé.png', metadata: { hash_sha1: 'a', hash_sha256: 'b' } })
      await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })

      const pending = await get(scan.id, apiKey)
      assert.equal(pending.statusCode, 200)
      assert.deepEqual([pending.json().status, pending.json().completed_at], ['pending', null])

      await complete(scan.id)
      const completed = (await get(scan.id.toUpperCase(), apiKey)).json()
      assert.deepEqual(completed, {
        id: scan.id,
        scan_type: kind,
        status: 'threat',
        content_length: 68,
        content_type: 'text/plain',
        signals: ['Virus:Test'],
        metadata: { hash_sha1: 'a', hash_sha256: 'b' },
        created_at: completed.created_at,
        completed_at: completed.created_at,
        content_name: 'résumé.png',
      })
    })

    test(`200: a completed ${kind} job comes with a signed receipt of what was recorded, if asked`, async () => {
      const { digest, apiKey } = await stores.register()
      const metadata = { hash_sha1: 'a', hash_sha256: 'b', engine_versions: 'ClamAV 1.4.3' }
      const scan = newTestScan({ kind, contentName: 'résumé.png', metadata })
      await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })
      const withReceipt = `${scan.id}?receipt=1`
      assert.deepEqual((await get(withReceipt, apiKey)).json(), (await get(scan.id, apiKey)).json())
      await complete(scan.id)

      const plain = await get(scan.id, apiKey)
      const answer = await get(withReceipt, apiKey, { 'if-none-match': String(plain.headers.etag) })
      assert.equal(answer.statusCode, 200)
      assert.deepEqual([answer.headers['cache-control'], answer.headers.etag], ['no-store', undefined])
      const { receipt, ...others } = answer.json<ScanResult>().metadata ?? {}
      const result = plain.json<ScanResult>()
      assert.deepEqual({ ...answer.json<ScanResult>(), metadata: others }, result)
      assert(receipt !== undefined)
      const claims = { iss: `urn:uuid:${installationId}`, iat: signedAt, installation_id: installationId, result }
      const [current] = await receiptKeys.listKeys()
      assert.deepEqual(verifyReceipt(receipt, await fetchKeys()), { receipt: claims, kid: current?.id })

      const rotated = await receiptKeys.rotateKey()
      assert.deepEqual(verifyReceipt(receipt, await fetchKeys()), { receipt: claims, kid: current?.id })
      const next = (await get(withReceipt, apiKey)).json().metadata.receipt
      assert.deepEqual(verifyReceipt(next, await fetchKeys()), { receipt: claims, kid: rotated })
      // Only the private key that signs is kept.
      const sealed = await stores.database.pool.query('select id from receipt_keys where sealed is not null')
      assert.deepEqual(sealed.rows, [{ id: rotated }])
    })

    test(`422: a receipt of a ${kind} job is asked for in no other way, and not of a test`, async () => {
      const { id, digest, apiKey } = await stores.register()
      const scan = newTestScan({ kind })
      await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })
      await complete(scan.id)
      for (const value of ['', '0', 'true', '1&receipt=1'])
        assert.deepEqual((await get(`${scan.id}?receipt=${value}`, apiKey)).json().errors, {
          receipt: ['receipt must be 1, or be left out.'],
        })
      const testKey = await stores.registration.createKey(id, { name: 'test', expiresAt: null, isTest: true })
      await stores.database.pool.query(`update scans set metadata = '{"test":"true"}' where id = $1`, [scan.id])
      assert.equal((await get(scan.id, testKey.apiKey)).statusCode, 200)
      const refused = await get(`${scan.id}?receipt=1`, testKey.apiKey)
      assert.equal(refused.statusCode, 422)
      assert.match(refused.json().errors.receipt[0], /nothing was scanned/)
    })

    test(`422: a ${kind} job of another account or of the other kind is not there`, async () => {
      const [mine, other] = [await stores.register(), await stores.register()]
      const scan = newTestScan({ kind })
      const otherKind = newTestScan({ kind: kind === 'malware' ? 'nsfw_image' : 'malware' })
      await stores.gate.admit({ keyDigest: mine.digest, countsRequest: false, scan })
      await stores.gate.admit({ keyDigest: mine.digest, countsRequest: false, scan: otherKind })
      for (const answer of [await get(scan.id, other.apiKey), await get(otherKind.id, mine.apiKey)]) {
        assert.equal(answer.statusCode, 422)
        assert.deepEqual(answer.json().errors, { id: ['The job could not be found.'] })
      }
    })
  }
})
