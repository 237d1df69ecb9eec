import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ScanKind } from '@assay/contract'
import type { FastifyInstance } from 'fastify'
import { makeAdmission, makeRecentCallers } from '../../src/domain/accounts/admission.ts'
import { makeResultWaiters, makeScanning } from '../../src/domain/scans/scanning.ts'
import { makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import { makeHttpServer } from '../../src/http/server.ts'
import { makeMetrics } from '../../src/runtime/metrics.ts'
import { silentLog } from '../support/silent-log.ts'
import { newTestScan, openTestStores, type TestStores } from '../support/test-stores.ts'

const unused = () => {
  throw new Error('Fetching a result scans nothing')
}
const nothingToScanWith = {
  scanner: { scanContent: unused, scanUrl: unused },
  repeats: { findRepeat: unused, deleteIdempotencyKeys: unused },
  resultWaiters: makeResultWaiters(),
  describe: unused,
  clock: { now: unused },
  region: 'test',
  reportFailure: unused,
  observeVerdict: unused,
}

/** The answers that need a job in any state, which the store makes faster than engines do. */
describe('fetching a result', () => {
  let stores: TestStores
  let app: FastifyInstance
  before(async () => {
    stores = await openTestStores()
    app = await makeHttpServer({
      admission: makeAdmission({
        gate: stores.gate,
        creditGate: 'all',
        recentCallers: makeRecentCallers(),
      }),
      accounts: stores.accounts,
      scanning: makeScanning({ ...nothingToScanWith, scans: stores.scans, gate: stores.gate }),
      submitting: { submitFile: unused, submitUrl: unused },
      deliveryFeed: { list: unused },
      contents: { newWriter: unused },
      jobContents: { newWriter: unused },
      wrongKeys: { refuseTooMany: async () => {} },
      servesApi: true,
      trustedProxies: [],
      policy: makeAddressPolicy([]),
      log: silentLog,
      logRequest() {},
      metrics: makeMetrics({ region: 'test', version: '0' }),
      stopping: new AbortController().signal,
      region: 'test',
      publicUrl: undefined,
      corsOrigins: [],
      tls: undefined,
      scopes: [],
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

  for (const [kind, root] of [
    ['malware', '/v1/malware'],
    ['nsfw_image', '/v1/nsfw/images'],
  ] as [ScanKind, string][]) {
    const get = (id: string, apiKey: string) =>
      app.inject({ url: `${root}/${id}`, headers: { host: 'localhost', 'x-api-key': apiKey } })

    test(`200: a ${kind} job of the account comes back whole, pending and completed`, async () => {
      const { digest, apiKey } = await stores.register()
      const scan = newTestScan({ kind, contentName: 'résumé.png', metadata: { hash_sha1: 'a', hash_sha256: 'b' } })
      await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })

      const pending = await get(scan.id, apiKey)
      assert.equal(pending.statusCode, 200)
      assert.deepEqual([pending.json().status, pending.json().completed_at], ['pending', null])

      await stores.database.pool.query(
        `update scans set status = 'threat', completed_at = created_at, signals = '{Virus:Test}' where id = $1`,
        [scan.id],
      )
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
