import assert from 'node:assert/strict'
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { type Client, type FileInput, newClient, type Progress } from '@assay/client'
import { eicar, eicarSignal } from '../../../acceptance/support/archives.ts'
import { lacksClamAv } from '../../../acceptance/support/scanning.ts'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'

const service = getSharedService()
const lacking = await lacksClamAv(service.url)
const card = readFileSync(new URL('../../../docs/test-images/pornography.png', import.meta.url))
const origin = process.env.ASSAY_TEST_ORIGIN ?? ''
/** Larger than what the client sends in one write and what the service keeps in memory. */
const large = Buffer.alloc(3 * 1024 * 1024 + 7, 'all work and no play ')

describe('the client with the real service', () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-client-'))
  const eicarPath = join(dir, 'eicar.com')
  const largePath = join(dir, 'large.txt')
  const clients: Record<string, Client> = {}
  before(async () => {
    writeFileSync(eicarPath, eicar)
    writeFileSync(largePath, large)
    const { api_key: apiKey } = await service.createAccount()
    clients.own = newClient({ apiKey, baseUrl: service.url })
    clients.fetch = newClient({ apiKey, baseUrl: `${service.url}/v1/`, fetch })
  })
  after(() => rmSync(dir, { recursive: true, force: true }))
  const get = (name: string): Client => {
    const client = clients[name]
    assert(client !== undefined)
    return client
  }

  const inputs = (content: Buffer, path: string): Record<string, () => FileInput> => ({
    path: () => path,
    Buffer: () => content,
    ArrayBuffer: () => Uint8Array.from(content).buffer,
    Blob: () => new Blob([content]),
    'web stream': () => new Blob([content]).stream(),
    'Node stream': () => createReadStream(path),
    'async iterable': () => Readable.from([content.subarray(0, 10), content.subarray(10)]),
  })

  for (const way of ['own', 'fetch']) {
    test(`finds the test virus in every kind of input (${way})`, { skip: lacking }, async () => {
      for (const [kind, open] of Object.entries(inputs(eicar, eicarPath))) {
        const scan = await get(way).malware.scanFile(open(), { fileName: 'given.com' })
        assert.equal(scan.status, 'threat', kind)
        assert.deepEqual(scan.signals, [eicarSignal], kind)
        assert.equal(scan.content_length, eicar.length, kind)
        assert.equal(scan.content_name, 'given.com', kind)
      }
    })

    test(`sends all of a large input and reports progress (${way})`, async () => {
      const expected = (await get(way).malware.scanFile(large)).metadata?.hash_sha256
      for (const [kind, open] of Object.entries(inputs(large, largePath))) {
        const steps: Progress[] = []
        const scan = await get(way).malware.scanFile(open(), { onProgress: (progress) => steps.push(progress) })
        assert.equal(scan.metadata?.hash_sha256, expected, kind)
        assert.deepEqual(
          steps.map(({ sent }) => sent),
          steps.map(({ sent }) => sent).sort((a, b) => a - b),
          kind,
        )
        const isStream = kind.includes('stream') || kind.includes('iterable')
        assert.deepEqual(steps.at(-1), { sent: large.length, total: isStream ? undefined : large.length }, kind)
      }
    })
  }

  test('sends the name of the input, if it has one', async () => {
    const { malware } = get('own')
    assert.equal((await malware.scanFile(largePath)).content_name, 'large.txt')
    assert.equal((await malware.scanFile(createReadStream(largePath))).content_name, 'large.txt')
    assert.equal((await malware.scanFile(new File(['x'], 'naïve "€".txt'))).content_name, 'naïve %22€%22.txt')
    assert.equal((await malware.scanFile(Buffer.from('x'))).content_name, undefined)
    assert.equal((await get('fetch').malware.scanFile(Buffer.from('x'))).content_name, undefined)
  })

  test('every response has credits, rate and region in meta, which JSON does not include', async () => {
    const { malware, account, ping } = get('own')
    const scan = await malware.scanFile(Buffer.from('counted'))
    const receipt = await malware.submitFile(Buffer.from('counted'))
    const settled = await malware.waitFor(receipt.id)
    for (const { meta } of [scan, receipt, settled, await account(), await ping()]) {
      assert(meta.credits !== undefined && meta.credits.remaining < meta.credits.limit)
      assert.equal(meta.rate?.window, '1m')
      assert(meta.rate.remaining < 100_000 && meta.rate.resetsAt > new Date())
      assert.equal(meta.region, 'local')
      assert.equal(meta.attempts, 1)
    }
    assert.equal(scan.meta.status, 201)
    assert.equal(receipt.meta.status, 202)
    assert.deepEqual(Object.keys(receipt), ['id'])
    assert(!JSON.stringify(scan).includes('attempts'))
    const me = await account()
    assert.equal(me.credit_remaining, me.meta.credits?.remaining)
  })

  test('submits a file and waits for the result', { skip: lacking }, async () => {
    for (const { malware } of Object.values(clients)) {
      const { id } = await malware.submitFile(eicarPath)
      const result = await malware.waitFor(id)
      assert.equal(result.id, id)
      assert.equal(result.status, 'threat')
      assert.deepEqual(await malware.getResult(id), result)
    }
  })

  test('scans URLs for malware and for NSFW content', async () => {
    const { malware, nsfw } = get('own')
    for (const scans of [malware, nsfw.images]) {
      const scan = await scans.scanUrl(`${origin}/one.png`, { fileName: 'given.png' })
      assert.equal(scan.status, 'clean')
      assert.equal(scan.content_name, 'given.png')
      const { id } = await scans.submitUrl(new URL(`${origin}/two.png`))
      assert.equal((await scans.waitFor(id)).status, 'clean')
    }
  })

  test('scans images', async () => {
    const { images } = get('own').nsfw
    const scan = await images.scanFile(card, { fileName: 'card.png' })
    assert.equal(scan.status, 'threat')
    assert.equal(scan.scan_type, 'nsfw_image')
    const { id } = await images.submitFile(new Blob([card]))
    assert.deepEqual((await images.waitFor(id)).signals, ['Classification:pornography'])
    assert.equal((await images.getResult(id)).status, 'threat')
  })

  test('is charged once for an idempotency key, and other content with that key is rejected', async () => {
    const { malware } = get('own')
    const idempotencyKey = crypto.randomUUID()
    const first = await malware.scanFile(Buffer.from('once'), { idempotencyKey })
    const second = await malware.scanFile(Buffer.from('once'), { idempotencyKey })
    assert.equal(second.id, first.id)
    assert.equal(second.meta.credits?.remaining, first.meta.credits?.remaining)
    await assert.rejects(malware.scanFile(Buffer.from('twice'), { idempotencyKey }), {
      name: 'ValidationFailed',
      message: 'Idempotency-Key was used for another request within the last 24 hours.',
    })
  })
})
