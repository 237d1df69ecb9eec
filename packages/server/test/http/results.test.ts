import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ScanKind } from '@assay/contract'
import type { FastifyInstance } from 'fastify'
import { makeAdmission } from '../../src/domain/accounts/admission.ts'
import { makeTrust } from '../../src/domain/accounts/trust.ts'
import { makeReadiness } from '../../src/domain/readiness.ts'
import { makeBell } from '../../src/domain/scans/bell.ts'
import { makeAddressPolicy } from '../../src/domain/scans/public-address.ts'
import { makeScanning } from '../../src/domain/scans/scanning.ts'
import { makeHttpServer } from '../../src/http/server.ts'
import { makeMetrics } from '../../src/runtime/metrics.ts'
import { silentLog } from '../support/test-database.ts'
import { newTestScan, openTestOffice, type TestOffice } from '../support/test-office.ts'

const unused = () => {
  throw new Error('Fetching a result scans nothing')
}
const nothingToScanWith = {
  outcomes: { ofContent: unused, ofUrl: unused },
  repeats: { findRepeat: unused, deleteIdempotency: unused },
  bell: makeBell(),
  describe: unused,
  clock: { now: unused },
  region: 'test',
  reportFailure: unused,
  observeVerdict: unused,
}

/** The answers that need a job in any state, which the store makes faster than engines do. */
describe('fetching a result', () => {
  let office: TestOffice
  let app: FastifyInstance
  before(async () => {
    office = await openTestOffice()
    app = await makeHttpServer({
      admission: makeAdmission({
        gate: office.gate,
        creditGate: 'all',
        trust: makeTrust({ clock: { now: () => new Date() } }),
      }),
      accounts: office.accounts,
      scanning: makeScanning({ ...nothingToScanWith, scans: office.scans, gate: office.gate }),
      submitting: { submitFile: unused, submitUrl: unused },
      contents: { newWriter: unused },
      jobContents: { newWriter: unused, toPlace: unused, places: [], open: unused, remove: unused, listKeys: unused },
      listEngines: () => [],
      roles: ['api', 'worker'],
      countWorkers: undefined,
      servesApi: true,
      policy: makeAddressPolicy([]),
      log: silentLog,
      logRequest() {},
      metrics: makeMetrics({ region: 'test', version: '0' }),
      readiness: makeReadiness({ checks: [], timeoutMs: 1 }),
      region: 'test',
      version: '0',
      publicUrl: undefined,
      corsOrigins: [],
      tls: undefined,
      registerMore: [],
      noteRefusal: () => {},
      isOutage: () => false,
      maxConnections: 100,
      draining: new AbortController().signal,
    })
  })
  after(async () => {
    await app.close()
    await office.close()
  })

  for (const [kind, root] of [
    ['malware', '/v1/malware'],
    ['nsfw_image', '/v1/nsfw/images'],
  ] as [ScanKind, string][]) {
    const get = (id: string, apiKey: string) =>
      app.inject({ url: `${root}/${id}`, headers: { host: 'localhost', 'x-api-key': apiKey } })

    test(`200: a ${kind} job of the account comes back whole, pending and settled`, async () => {
      const { digest, apiKey } = await office.register()
      const scan = newTestScan({ kind, contentName: 'résumé.png', metadata: { hash_sha1: 'a', hash_sha256: 'b' } })
      await office.gate.ask({ keyDigest: digest, takesRequest: false, scan })

      const pending = await get(scan.id, apiKey)
      assert.equal(pending.statusCode, 200)
      assert.deepEqual([pending.json().status, pending.json().completed_at], ['pending', null])

      await office.database.pool.query(
        `update scans set status = 'threat', completed_at = created_at, signals = '{Virus:Test}' where id = $1`,
        [scan.id],
      )
      const settled = (await get(scan.id.toUpperCase(), apiKey)).json()
      assert.deepEqual(settled, {
        id: scan.id,
        scan_type: kind,
        status: 'threat',
        content_length: 68,
        content_type: 'text/plain',
        signals: ['Virus:Test'],
        metadata: { hash_sha1: 'a', hash_sha256: 'b' },
        created_at: settled.created_at,
        completed_at: settled.created_at,
        content_name: 'résumé.png',
      })
    })

    test(`422: a ${kind} job of another account or of the other kind is not there`, async () => {
      const [mine, other] = [await office.register(), await office.register()]
      const scan = newTestScan({ kind })
      const otherKind = newTestScan({ kind: kind === 'malware' ? 'nsfw_image' : 'malware' })
      await office.gate.ask({ keyDigest: mine.digest, takesRequest: false, scan })
      await office.gate.ask({ keyDigest: mine.digest, takesRequest: false, scan: otherKind })
      for (const answer of [await get(scan.id, other.apiKey), await get(otherKind.id, mine.apiKey)]) {
        assert.equal(answer.statusCode, 422)
        assert.deepEqual(answer.json().errors, { id: ['The job could not be found.'] })
      }
    })
  }
})
