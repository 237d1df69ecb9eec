import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { headers } from '@assay/contract'
import { joinTestS3, lacksTestS3 } from '../../scripts/test-s3.ts'
import { eicarMember, eicarSignal, newTar } from '../support/archives.ts'
import { grepFiles } from '../support/content-files.ts'
import { openBefore } from '../support/open-before.ts'
import { runProgram } from '../support/run-program.ts'
import { lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { startService } from '../support/start-service.ts'
import { makeCaller, toId } from '../support/submitting.ts'
import { openTcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

const skip = lacksTestS3() || (await lacksClamAv(getSharedService().url))
const prefix = `acceptance-${process.pid}`
const apiKey = 's3-test-key'
const marker = Buffer.from(`marker-${randomBytes(24).toString('hex')}`)

/** More than one part, with the marker in every page. */
function newMarked(megabytes: number): Buffer {
  const page = Buffer.alloc(4096, randomBytes(16).toString('hex'))
  marker.copy(page, 100)
  return newTar([{ name: 'a.txt', data: Buffer.concat(Array<Buffer>(megabytes * 256).fill(page)) }, eicarMember])
}

describe('background scans with their content in S3', { skip }, () => {
  const store = openBefore(joinTestS3)
  const network = openBefore(async () => {
    const { hostname, port } = new URL(store.endpoint)
    return openTcpProxy({ host: hostname, port: Number(port) })
  })
  const toSettings = () => ({
    ASSAY_BLOBS: store.toBlobsUrl(prefix).replace(store.endpoint, `http://127.0.0.1:${network.port}`),
    ASSAY_S3_ACCESS_KEY: store.accessKey,
    ASSAY_S3_SECRET_KEY: store.secretKey,
    ASSAY_MASTER_KEY: randomBytes(32).toString('hex'),
    ASSAY_BOOTSTRAP_KEY: apiKey,
    ASSAY_NSFW_PROFILE: 'off',
    ASSAY_VERDICT_CACHE: '0',
  })
  const service = openBefore(() => startService(toSettings()))
  const listStored = () => store.listNames(prefix)
  const readReadiness = async () => JSON.parse(await (await fetch(`${service.url}/readyz`)).text())
  const findMarker = () => [store.filesDir, service.dataDir].flatMap((dir) => grepFiles(dir, marker))

  test('are prepared for by the doctor, which tries every call, or says which one does not work', async () => {
    const settings = toSettings()
    const examine = async (changes: Record<string, string>) => {
      const { out } = await runProgram({ ...settings, ASSAY_DATA_DIR: service.dataDir, ...changes }, 'doctor', '--json')
      const { findings } = JSON.parse(out) as { findings: { check: string; ok: boolean; says: string }[] }
      return findings.filter(({ check }) => check === 'content store')
    }
    const [good, ...more] = await examine({})
    assert.equal(good?.ok, true)
    assert.match(good.says, /^bucket assay-test: listing, writing, reading, uploading in parts and deleting work$/)
    assert.deepEqual(more, [])
    const [bad] = await examine({ ASSAY_S3_SECRET_KEY: 'wrong' })
    assert.deepEqual([bad?.ok, /refuses the credentials/.test(bad?.says ?? '')], [false, true])
  })

  test('give the verdict, and nothing of it is there in clear, or afterwards', async () => {
    const caller = makeCaller(service.url, apiKey)
    const id = toId(await caller.sendFile('malware', 'submit', newMarked(7)))
    assert.deepEqual(findMarker(), [])
    const { status, signals } = await caller.complete('malware', id)
    assert.deepEqual([status, signals], ['threat', [eicarSignal]])
    await waitUntil('the content to be gone', async () => (await listStored()).length === 0)
    assert.deepEqual(findMarker(), [])
    assert.equal(await caller.readSpent(), 1)
    const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
    for (const call of ['UploadPart', 'CompleteMultipartUpload', 'GetObject', 'DeleteObject'])
      assert.match(
        metrics,
        new RegExp(`assay_s3_call_duration_seconds_count\\{.*call="${call}",outcome="ok".*\\} [1-9]`),
      )
    assert.equal((await readReadiness()).checks['content store'], 'ok')
  })

  test('are refused uncharged while the store is away, and accepted when it is back', async () => {
    const caller = makeCaller(service.url, apiKey)
    const spent = await caller.readSpent()
    network.setMode('cut')
    const refused = await caller.sendFile('malware', 'submit', newMarked(1))
    assert.equal(refused.status, 503, refused.text)
    assert.match(JSON.parse(refused.text).detail, /^The content cannot be stored at the moment/)
    assert.equal(refused.headers[headers.retryAfter.toLowerCase()], '10')
    assert.equal(await caller.readSpent(), spent)
    const { status, reasons, checks } = await readReadiness()
    assert.equal(status, 'degraded')
    assert.equal(checks['content store'], 'fault')
    assert.match(reasons.join(), /The content store does not answer/)
    // Content that fits into the row of its job needs no store.
    await caller.complete('malware', toId(await caller.sendFile('malware', 'submit', 'small')))

    network.setMode('pass')
    const id = toId(await caller.sendFile('malware', 'submit', newMarked(1)))
    assert.equal((await caller.complete('malware', id)).status, 'threat')
    assert.equal((await readReadiness()).status, 'ready')
  })

  test('wait while the store is away, and are done when it is back', async () => {
    const caller = makeCaller(service.url, apiKey)
    const countFaults = () => service.log().split('the content store fails').length
    const before = countFaults()
    // The store vanishes when the scan fetches the content.
    network.muteAfter(`GET /assay-test/${prefix}/`)
    const id = toId(await caller.sendFile('malware', 'submit', newMarked(1)))
    await waitUntil('the scan to notice', () => countFaults() > before)
    network.setMode('pass')
    const { status, signals } = await caller.complete('malware', id)
    assert.deepEqual([status, signals], ['threat', [eicarSignal]])
    await waitUntil('the content to be gone', async () => (await listStored()).length === 0)
  })

  test('need keys that the store accepts: the start says so', async () => {
    const start = startService({ ...toSettings(), ASSAY_S3_SECRET_KEY: 'not-the-secret' })
    await assert.rejects(start, /The content store refuses the credentials \(SignatureDoesNotMatch\)\. Check ASSAY_S3/)
  })
})
