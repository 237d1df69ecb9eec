import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { eicar, eicarMember, eicarSignal, newTar } from '../support/archives.ts'
import { openFakeClamd } from '../support/fake-clamd.ts'
import { images } from '../support/forms.ts'
import { openBefore } from '../support/open-before.ts'
import { assertProblem } from '../support/problems.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { startService, withoutImages } from '../support/start-service.ts'
import { type Kind, listKept, makeCaller, toId, toResult } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const shared = getSharedService()
const lacking = await lacksClamAv(shared.url)

describe('a file that is submitted', () => {
  const caller = openBefore(async () => makeCaller(shared.url, (await shared.createAccount()).api_key))

  const filler = (bytes: number) => Buffer.alloc(bytes, `submitted ${randomUUID()} `)
  const contents: [what: string, kind: Kind, content: Buffer, status: string][] = [
    ['1 KB', 'malware', filler(1000), 'clean'],
    ['the test virus', 'malware', eicar, 'threat'],
    ['64 KB', 'malware', filler(2 ** 16), 'clean'],
    ['a byte more', 'malware', filler(2 ** 16 + 1), 'clean'],
    ['300 KB', 'malware', newTar([{ name: 'a', data: filler(300_000) }, eicarMember]), 'threat'],
    ['3 MB', 'malware', newTar([{ name: 'a', data: filler(3_000_000) }, eicarMember]), 'threat'],
    ['20 MB', 'malware', filler(20_000_000), 'clean'],
    ['a picture', 'nsfw/images', images['one.png'], 'clean'],
    ['a GIF', 'nsfw/images', images['one.gif'], 'clean'],
  ]

  for (const [what, kind, content, status] of contents) {
    test(`${what} for ${kind} has its result in the end, for one credit`, { skip: lacking }, async () => {
      const before = await caller.readSpent()
      const answer = await caller.sendFile(kind, 'submit', content, { file_name: `${what}.png` })
      const result = await caller.complete(kind, toId(answer))
      assert.equal(
        answer.headers['x-api-credit-remaining'],
        String(Number(answer.headers['x-api-credit-limit']) - before - 1),
      )
      assert.equal(result.status, status, JSON.stringify(result))
      assert.deepEqual(result.signals, status === 'threat' ? [eicarSignal] : [])
      assert.equal(result.content_length, content.length)
      assert.equal(result.content_name, `${what}.png`)
      assert.equal(result.scan_type, kind === 'malware' ? 'malware' : 'nsfw_image')
      assert.equal(result.metadata?.hash_sha1, hash('sha1', content))
      assert.equal(result.metadata?.hash_sha256, hash('sha256', content))
      assert(result.completed_at !== null && String(result.completed_at) >= result.created_at)
      assert.equal((await caller.readSpent()) - before, 1)
    })
  }

  test('is gone from the disk when it is completed', { skip: lacking }, async () => {
    const dataDir = String(shared.settings.ASSAY_DATA_DIR)
    const before = new Set(listKept(dataDir))
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => toId(await caller.sendFile('malware', 'submit', filler(5_000_000)))),
    )
    const ours = listKept(dataDir).filter((name) => !before.has(name))
    for (const id of ids) await caller.complete('malware', id)
    await waitUntil('what was kept to go', () => !listKept(dataDir).some((name) => ours.includes(name)))
  })

  test('200, then 304: a completed result may be kept by whoever asked for it', { skip: lacking }, async () => {
    const id = toId(await caller.sendFile('malware', 'submit', 'kept'))
    const completed = await caller.complete('malware', id)
    const answer = await caller.fetchResult('malware', id)
    assert.deepEqual(toResult(answer, 200), completed, 'it never changes')
    assert.match(String(answer.headers['cache-control']), /\bprivate\b/)
    const tag = String(answer.headers.etag)
    assert.match(tag, /^"[^"]+"$/)
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const again = await caller.fetchResult('malware', id, '', { 'if-none-match': known })
      assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', tag], known)
      assert.notEqual(again.headers['x-api-credit-remaining'], undefined)
    }
    const other = await caller.fetchResult('malware', id, '', { 'if-none-match': '"other"' })
    assert.deepEqual(toResult(other, 200), completed)
  })

  test('422: a wait that is no number of seconds up to 30', async () => {
    const id = toId(await caller.sendFile('malware', 'submit', 'waited for'))
    for (const wait of ['31', '-1', '1.5', '', 'x', '1e1', '0x1', '%201', '100', '1&wait=2']) {
      const answer = await caller.fetchResult('malware', id, `?wait=${wait}`)
      await assertProblem(answer, { status: 422, kind: 'validation', errors: ['wait'] }, wait)
    }
    for (const wait of ['0', '1', '30'])
      assert.equal((await caller.fetchResult('malware', id, `?wait=${wait}`)).status, 200)
  })

  test('422: a result is told to its own account and under its own kind only', async () => {
    const id = toId(await caller.sendFile('malware', 'submit', 'mine'))
    const stranger = makeCaller(shared.url, (await shared.createAccount()).api_key)
    for (const answer of [
      await stranger.fetchResult('malware', id, '?wait=5'),
      await caller.fetchResult('nsfw/images', id, '?wait=5'),
    ]) {
      await assertProblem(answer, { status: 422, kind: 'validation', errors: ['id'] })
    }
  })
})

describe('Idempotency-Key of an upload', { skip: lacking }, () => {
  let caller: ReturnType<typeof makeCaller>
  before(async () => {
    caller = makeCaller(shared.url, (await shared.createAccount()).api_key)
  })

  for (const kind of ['malware', 'nsfw/images'] as const) {
    for (const how of ['scan', 'submit'] as const) {
      const [content, other] = kind === 'malware' ? ['one', 'other'] : [images['one.png'], images['one.gif']]
      test(`${kind}/${how}/file: twenty at once are one, and so is a later one`, async () => {
        const before = await caller.readSpent()
        const key = { 'idempotency-key': randomUUID() }
        const send = () => caller.sendFile(kind, how, content, {}, key)
        const answers = await Promise.all(Array.from({ length: 20 }, send))
        answers.push(await send())
        const status = how === 'scan' ? 201 : 202
        assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [status])
        for (const answer of answers) assert.deepEqual(JSON.parse(answer.text), JSON.parse(answers[0]?.text ?? ''))
        assert.equal(new Set(answers.map((answer) => answer.headers['x-api-result'])).size, 1)
        assert.equal((await caller.readSpent()) - before, 1)

        const mismatch = { status: 422, kind: 'validation' as const, errors: ['Idempotency-Key'] }
        await assertProblem(await caller.sendFile(kind, how, other, {}, key), mismatch, 'other content')
        await assertProblem(await caller.sendFile(kind, how, content, { file_name: 'a.png' }, key), mismatch, 'a name')
        assert.equal((await caller.readSpent()) - before, 1)
      })
    }
  }

  test('belongs to one operation of one account', async () => {
    const stranger = makeCaller(shared.url, (await shared.createAccount()).api_key)
    const key = { 'idempotency-key': 'the same for all' }
    const ids = [
      toId(await caller.sendFile('malware', 'submit', 'a', {}, key)),
      toId(await stranger.sendFile('malware', 'submit', 'b', {}, key)),
      toId(await caller.sendFile('nsfw/images', 'submit', images['one.png'], {}, key)),
      toResult(await caller.sendFile('malware', 'scan', 'c', {}, key), 201).id,
    ]
    assert.equal(new Set(ids).size, 4)
  })

  test('422 and free: one that is too long or empty, with whatever else is wrong', async () => {
    const before = await caller.readSpent()
    const invalid = (errors: string[]) => ({ status: 422, kind: 'validation', errors }) as const
    for (const how of ['scan', 'submit'] as const) {
      for (const key of ['k'.repeat(256), '']) {
        const answer = await caller.sendFile('malware', how, 'a', {}, { 'idempotency-key': key })
        await assertProblem(answer, invalid(['Idempotency-Key']))
        const both = await caller.sendFile('malware', how, '', {}, { 'idempotency-key': key })
        await assertProblem(both, invalid(['Idempotency-Key', 'file']))
      }
    }
    assert.equal(await caller.readSpent(), before)
    toId(await caller.sendFile('malware', 'submit', 'a', {}, { 'idempotency-key': 'k'.repeat(255) }))
  })
})

describe('a job whose engine fails every time', { skip: alreadyTested }, () => {
  const clamd = openBefore(openFakeClamd)
  const service = openBefore(() => startService({ ...withoutImages, ASSAY_CLAMD: clamd.path }))

  test('ends in Error:EngineFailed after three attempts, and its credit comes back once', async () => {
    const caller = makeCaller(service.url, service.apiKey)
    const send = async (content: string | Buffer) => toId(await caller.sendFile('malware', 'submit', content))
    const failing = [await send('error small'), await send(Buffer.alloc(3_000_000, 'error '))]
    const good = await send('good content')
    assert.equal(await caller.readSpent(), 3)
    assert.equal((await caller.complete('malware', good)).status, 'clean')
    for (const id of failing) {
      const { status, signals, metadata } = await caller.complete('malware', id)
      assert.deepEqual([status, signals], ['error', ['Error:EngineFailed']])
      assert.match(String(metadata?.hash_sha256), /^[0-9a-f]{64}$/)
    }
    assert.equal(await caller.readSpent(), 1)
    const [account] = (await service.operate('accounts', 'list')) as { id: string }[]
    const ledger = (await service.operate('credits', 'ledger', '--account', account?.id ?? '')) as Entry[]
    const refunds = ledger.filter(({ kind }) => kind === 'refund').map(({ scan_id }) => scan_id)
    assert.deepEqual(refunds.sort(), failing.sort())
    await waitUntil('what was kept to go', () => listKept(service.dataDir).length === 0)
  })
})

type Entry = { kind: string; scan_id: string }
