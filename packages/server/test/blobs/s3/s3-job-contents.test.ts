import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { buffer as readAll } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { joinTestS3, lacksTestS3, type TestS3 } from '../../../../../scripts/test-s3.ts'
import { StorageUnavailable } from '../../../src/domain/ports/content-store.ts'
import { describeJobContents, keepAndRemove, master, owner, take } from '../job-contents-contract.ts'
import { type Call, type Fate, openFaultyProxy } from './faulty-proxy.ts'
import { newCorner } from './store.ts'

const skip = lacksTestS3()
const soon = { pausesMs: [10, 50, 200, 500] }
/** Fills one part and begins a second one. */
const twoParts = randomBytes(5_300_000)

let store: TestS3
before(async () => {
  if (skip === false) store = await joinTestS3()
})
after(() => store?.close())

describeJobContents('in S3', {
  skip,
  // 5_241_561 bytes fill exactly one part when they are sealed.
  sizes: [1, 65_536, 65_537, 300_000, 5_241_561, 5_241_562, 10_600_000],
  async newStorage(t) {
    const corner = newCorner(t, store)
    return {
      open: async (master) => (await corner.open(master)).contents,
      listStored: corner.listNames,
      findClear: corner.findClear,
      damage: corner.damage,
      cutOff: corner.cutOff,
      replace: corner.replace,
    }
  },
})

describe('a content store that fails', { skip }, () => {
  test('now and then loses nothing: every call is repeated', async (t) => {
    const corner = newCorner(t, store)
    const seen = new Map<string, number>()
    const fates: Fate[] = ['cut', { status: 503, code: 'SlowDown' }, 'pass']
    const proxy = await openFaultyProxy(t, store.endpoint, ({ method, path, query, range }) => {
      const call = [method, path, query, range].join(' ')
      const times = seen.get(call) ?? 0
      seen.set(call, times + 1)
      return fates[times] ?? 'pass'
    })
    const { contents } = await corner.open(master, { endpoint: proxy.endpoint, ...soon })
    await keepAndRemove(contents, twoParts)
    assert.deepEqual(await corner.listNames(), [])
    const uploads = ['CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload']
    for (const call of [...uploads, 'GetObject', 'DeleteObject']) {
      const outcomes = new Set(corner.observed.filter((each) => each.call === call).map(({ outcome }) => outcome))
      assert.deepEqual([...outcomes].sort(), ['failed', 'lost', 'ok'], call)
    }
  })

  test('in the middle of an answer is asked for the missing bytes only', async (t) => {
    const corner = newCorner(t, store)
    let cuts = 0
    const isCut = ({ method, range }: Call) =>
      method === 'GET' && range !== undefined && !range.endsWith('-38') && cuts++ < 3
    const proxy = await openFaultyProxy(t, store.endpoint, (call) => (isCut(call) ? { cutAfter: 30_000 } : 'pass'))
    const { contents } = await corner.open(master, { endpoint: proxy.endpoint, ...soon })
    const content = await take(contents, twoParts.subarray(0, 3_000_000))
    const kept = await content.persist(owner)
    const opened = await contents.open(kept, content, owner)
    assert.ok((await readAll(opened.read())).equals(twoParts.subarray(0, 3_000_000)))
    const ranges = proxy.calls.flatMap(({ range }) => range ?? [])
    // The head lies in the first two frames.
    const head = [39, 30_039, 60_039, 90_039].map((start) => `bytes=${start}-131142`)
    assert.deepEqual(ranges.slice(1, 6), [...head, 'bytes=39-1048870'])
    await opened.release()
    await contents.remove(kept)
  })

  test('to confirm an upload that it completed is not taken for a failure', async (t) => {
    const corner = newCorner(t, store)
    let completions = 0
    const isComplete = ({ method, query }: Call) => method === 'POST' && query.has('uploadId')
    const fates: Fate[] = ['lose answer', { status: 404, code: 'NoSuchUpload' }]
    const proxy = await openFaultyProxy(t, store.endpoint, (call) =>
      isComplete(call) ? (fates[completions++] ?? 'pass') : 'pass',
    )
    const { contents } = await corner.open(master, { endpoint: proxy.endpoint, ...soon })
    const kept = await (await take(contents, twoParts)).persist(owner)
    assert.equal(completions, 2)
    assert.equal((await corner.listNames()).length, 1)
    await contents.remove(kept)
  })

  test('for long makes uploads and reads fail, and does not affect later ones', async (t) => {
    const corner = newCorner(t, store)
    let isDown = false
    const proxy = await openFaultyProxy(t, store.endpoint, () => (isDown ? 'cut' : 'pass'))
    const { contents, findFault, requireUsable } = await corner.open(master, { endpoint: proxy.endpoint, ...soon })
    const content = await take(contents, twoParts)
    const kept = await content.persist(owner)
    isDown = true
    // The store has six buffers for uploads, so that a seventh has to wait for one.
    const uploads = await Promise.allSettled(Array.from({ length: 7 }, () => take(contents, twoParts)))
    for (const upload of uploads) assert.ok(upload.status === 'rejected' && upload.reason instanceof StorageUnavailable)
    await assert.rejects(contents.open(kept, content, owner), StorageUnavailable)
    await assert.rejects(contents.remove(kept), StorageUnavailable)
    assert.match((await findFault()) ?? '', /^The content store does not answer: /)
    await requireUsable()

    isDown = false
    assert.equal(await findFault(), undefined)
    const again = await (await take(contents, twoParts)).persist(owner)
    await contents.remove(again)
    await contents.remove(kept)
    assert.deepEqual(await corner.listNames(), [])
    assert.deepEqual(await corner.listUploads(), [])
  })

  test('because a setting is wrong is not called again, and the setting is named', async (t) => {
    const corner = newCorner(t, store)
    const says = async (change: Partial<typeof corner.settings>) => {
      const before = { ...corner.settings }
      Object.assign(corner.settings, change)
      const { requireUsable, findFault, contents } = await corner.open(master)
      Object.assign(corner.settings, before)
      assert.match((await findFault()) ?? '', /^The content store refuses access: /)
      await assert.rejects(take(contents, randomBytes(100_000)), StorageUnavailable)
      return requireUsable().then(
        () => 'nothing',
        ({ message }) => message,
      )
    }
    const [accessKeyId, secretAccessKey] = [store.accessKey, 'not-the-secret']
    assert.match(await says({ credentials: { accessKeyId, secretAccessKey } }), /Check ASSAY_S3_ACCESS_KEY and/)
    assert.match(await says({ bucket: 'no-such-bucket' }), /has no bucket no-such-bucket\. Create it/)
    assert.match(await says({ region: 'eu-west-1' }), /does not accept the region eu-west-1/)
    assert.ok(!corner.observed.some(({ outcome }) => outcome !== 'refused'))
  })
})

describe('an upload to the content store', { skip }, () => {
  test('that is given up half-way is aborted in the store', async (t) => {
    const corner = newCorner(t, store)
    const { contents } = await corner.open(master)
    const writer = contents.newWriter()
    // The third part waits for the first one, so that the store knows the upload.
    for (let written = 0; written < 12; written++) await writer.write(Buffer.from(twoParts.subarray(0, 2 ** 20)))
    assert.equal((await corner.listUploads()).length, 1)
    await writer.abort()
    assert.deepEqual(await corner.listUploads(), [])
    assert.deepEqual(await corner.listNames(), [])
  })

  test('of a process that is gone is aborted when it is old enough, and no other upload', async (t) => {
    const corner = newCorner(t, store)
    const { abortUploads } = await corner.open(master)
    const stranger = { Bucket: store.bucket, Key: `${corner.settings.prefix}not-ours` }
    const own = { Bucket: store.bucket, Key: `${corner.settings.prefix}installation/left` }
    await corner.s3.createMultipartUpload(stranger)
    for (let left = 0; left < 3; left++) await corner.s3.createMultipartUpload(own)
    assert.equal(await abortUploads(60_000), 0)
    assert.equal(await abortUploads(-60_000), 3)
    assert.deepEqual(await corner.listUploads(), [stranger.Key])
  })

  test('that is slow does not delay others', async (t) => {
    const corner = newCorner(t, store)
    const { contents } = await corner.open(master)
    // The store has six buffers for uploads; each of the seven has begun its second part and pauses.
    const slow = Array.from({ length: 7 }, () => contents.newWriter())
    for (const writer of slow) await writer.write(Buffer.from(twoParts))
    const quick = await (await take(contents, twoParts)).persist(owner)
    await contents.remove(quick)
    const finished = await Promise.all(slow.map((writer) => writer.finish()))
    assert.equal((await corner.listNames()).length, slow.length)
    await Promise.all(finished.map((content) => content.release()))
    assert.deepEqual(await corner.listNames(), [])
  })

  test('in clear would be found in the files of the store', async (t) => {
    const corner = newCorner(t, store)
    const marker = `marker ${randomBytes(16).toString('hex')}`
    const stored = { Bucket: store.bucket, Key: `${corner.settings.prefix}clear` }
    await corner.s3.putObject({ ...stored, Body: marker })
    assert.equal((await corner.findClear(marker)).length, 1)
  })

  test('of other programs is never listed', async (t) => {
    const corner = newCorner(t, store)
    const { contents } = await corner.open(master)
    for (const key of ['beside', `${master.id}/notes.txt`])
      await corner.s3.putObject({ Bucket: store.bucket, Key: `${corner.settings.prefix}${key}`, Body: 'x' })
    assert.deepEqual(await contents.listKeys(-60_000), [])
  })
})
