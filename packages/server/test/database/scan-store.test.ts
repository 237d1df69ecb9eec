import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { toScanResult } from '../../src/domain/scans/scan.ts'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

describe('the scan store', () => {
  let stores: TestStores
  before(async () => {
    stores = await openTestStores()
  })
  after(() => stores.close())

  test('a scan is found by its own account and kind only', async () => {
    const [mine, other] = [await stores.register(), await stores.register()]
    const scan = newTestScan({ kind: 'nsfw_image', contentName: 'a.png', metadata: { hash_sha1: 'x' } })
    await stores.gate.admit({ keyDigest: mine.digest, countsRequest: false, scan })
    assert.ok((await stores.scans.findScan(mine.id, 'nsfw_image', scan.id)) !== undefined)
    assert.equal(await stores.scans.findScan(mine.id, 'malware', scan.id), undefined)
    assert.equal(await stores.scans.findScan(other.id, 'nsfw_image', scan.id), undefined)
    assert.equal(await stores.scans.findScan(mine.id, 'nsfw_image', randomUUID()), undefined)
  })

  test('a pending scan has every key of a result, null where nothing is known', async () => {
    const { id: accountId, digest } = await stores.register()
    const scan = newTestScan({ contentLength: 0, contentType: 'application/octet-stream' })
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })
    const found = await stores.scans.findScan(accountId, 'malware', scan.id)
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

  test('a completed scan is charged once and is read back unchanged', async () => {
    const { id: accountId, digest } = await stores.register({ credits: 5 })
    const scan = newTestScan({
      status: 'threat',
      contentLength: 262_144_000,
      contentType: 'application/zip',
      contentName: 'ünï "quoted", {braces} \\ 😀.zip',
      signals: ['Virus:Eicar', 'Virus:with, comma', 'Virus:"quoted" {braces} \\ NULL', ''],
      metadata: { hash_sha1: 'a', location: 'a.zip!b "c"\\d\te😀' },
      createdAt: new Date('2026-11-14T06:25:00.123Z'),
      completedAt: new Date('2026-11-14T06:25:01.987Z'),
    })
    const ask = () => stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })
    assert.equal((await ask()).outcome, 'admitted')
    assert.equal((await ask()).outcome, 'admitted')
    const { mode, region, ...kept } = scan
    assert.deepEqual(await stores.scans.findScan(accountId, 'malware', scan.id), kept)
    assert.deepEqual(await stores.getBalance(accountId), { remaining: 4, ledger: 4, debits: 1, scans: 1 })
  })

  test('a scan without findings has an empty list of signals, not null', async () => {
    const { id: accountId, digest } = await stores.register()
    const scan = newTestScan({ status: 'clean', signals: [], metadata: {}, completedAt: new Date() })
    await stores.gate.admit({ keyDigest: digest, countsRequest: false, scan })
    const found = await stores.scans.findScan(accountId, 'malware', scan.id)
    assert.deepEqual([found?.signals, found?.metadata], [[], {}])
  })

  test('a scan that failed because of Assay is recorded and not charged', async () => {
    const { id: accountId } = await stores.register({ credits: 5 })
    const scan = newTestScan({
      status: 'error',
      contentName: 'a.txt',
      signals: ['Error:EngineFailed'],
      metadata: { hash_sha1: 'x' },
      completedAt: new Date(),
    })
    await stores.scans.recordFailure(accountId, scan)
    const { mode, region, ...kept } = scan
    assert.deepEqual(await stores.scans.findScan(accountId, 'malware', scan.id), kept)
    assert.deepEqual(await stores.getBalance(accountId), { remaining: 5, ledger: 5, debits: 0, scans: 1 })
  })

  test('a failure without credits is recorded too', async () => {
    const { id: accountId } = await stores.register({ credits: 0 })
    const scan = newTestScan({ status: 'error', signals: ['Error:EngineFailed'], completedAt: new Date() })
    await stores.scans.recordFailure(accountId, scan)
    assert.ok((await stores.scans.findScan(accountId, 'malware', scan.id)) !== undefined)
    assert.deepEqual((await stores.getBalance(accountId))?.remaining, 0)
  })
})
