import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { toScanResult } from '../../src/domain/scans/scan-result.ts'
import { newTestScan, openTestOffice, type TestOffice } from '../support/test-office.ts'

describe('the scan store', () => {
  let office: TestOffice
  before(async () => {
    office = await openTestOffice()
  })
  after(() => office.close())

  test('a scan is found by its own account and kind only', async () => {
    const [mine, other] = [await office.register(), await office.register()]
    const scan = newTestScan({ kind: 'nsfw_image', contentName: 'a.png', metadata: { hash_sha1: 'x' } })
    await office.gate.ask({ keyDigest: mine.digest, takesRequest: false, scan })
    assert.ok((await office.scans.findScan(mine.id, 'nsfw_image', scan.id)) !== undefined)
    assert.equal(await office.scans.findScan(mine.id, 'malware', scan.id), undefined)
    assert.equal(await office.scans.findScan(other.id, 'nsfw_image', scan.id), undefined)
    assert.equal(await office.scans.findScan(mine.id, 'nsfw_image', randomUUID()), undefined)
  })

  test('a pending scan has every key of a result, null where nothing is known', async () => {
    const { id: accountId, digest } = await office.register()
    const scan = newTestScan({ contentLength: 0, contentType: 'application/octet-stream' })
    await office.gate.ask({ keyDigest: digest, takesRequest: false, scan })
    const found = await office.scans.findScan(accountId, 'malware', scan.id)
    assert.ok(found !== undefined)
    const { created_at, ...result } = toScanResult(found)
    assert.match(created_at, /^\d{4}-\d\d-\d\dT.*Z$/)
    assert.deepEqual(result, {
      id: scan.id,
      scan_type: 'malware',
      status: 'pending',
      content_length: 0,
      content_type: 'application/octet-stream',
      signals: null,
      metadata: null,
      completed_at: null,
    })
  })
})
