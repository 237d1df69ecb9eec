import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, test } from 'node:test'
import { headers, operations, type ScanResult, testAnswers } from '@assay/contract'
import { eicar } from '../support/archives.ts'
import { readDocumentedCases } from '../support/documented-cases.ts'
import { images } from '../support/forms.ts'
import { type Answer, sendTo } from '../support/http.ts'
import { assertCredits, goodUrl, toRequest } from '../support/operation.ts'
import { assertEmpty, assertProblem } from '../support/problems.ts'
import { toVerdict } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { type Kind, makeCaller, toId, toResult } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const service = getSharedService()
const credits = 50
let testKey = ''
let liveKey = ''
let tests: ReturnType<typeof makeCaller>
let live: ReturnType<typeof makeCaller>
before(async () => {
  const { id, api_key } = await service.createAccount('--credits', String(credits))
  const key = (await service.operate('keys', 'create', '--account', id, '--name', 'ci', '--test')) as Key
  assert.equal(key.test, true)
  testKey = key.api_key
  liveKey = api_key
  tests = makeCaller(service.url, testKey)
  live = makeCaller(service.url, liveKey)
})

type Key = { api_key: string; prefix: string; test: boolean; account_id: string }
type Outgoing = Parameters<typeof sendTo>[1]
const sendAs = (key: string, outgoing: Outgoing) =>
  sendTo(service.url, { ...outgoing, headers: { [headers.apiKey]: key, ...outgoing.headers } })
const contents: Record<Kind, Buffer> = { malware: Buffer.from('harmless'), 'nsfw/images': images['one.png'] }
const clean = { status: 'clean', signals: [] as string[], seconds: 0 }

describe('every documented file name gives the documented result', { concurrency: 32 }, () => {
  for (const documented of readDocumentedCases()) {
    for (const kind of ['malware', 'nsfw/images'] as const) {
      for (const source of ['file', 'url'] as const) {
        const expected = documented.sources.includes(source) ? documented.of[kind] : undefined
        const name = `${documented.name}.png`
        const send = (how: 'scan' | 'submit') =>
          source === 'file'
            ? tests.sendFile(kind, how, contents[kind], { file_name: name })
            : tests.sendUrl(kind, how, `https://files.example.com/in/${name}`)

        test(`${documented.name}: ${kind} scan/${source}`, async () => {
          const { scan } = expected ?? { scan: clean }
          const answer = await send('scan')
          assertCredits(answer, credits)
          if (scan === 500) return assertProblem(answer, { status: 500, kind: 'engine-unavailable' })
          const result = toVerdict(answer)
          assert.deepEqual([result.status, result.signals, result.metadata.test], [scan.status, scan.signals, 'true'])
          assert(toSeconds(result) >= scan.seconds, `${toSeconds(result)} s`)
        })

        test(`${documented.name}: ${kind} submit/${source}`, async () => {
          const { submit } = expected ?? { submit: clean }
          const answer = await send('submit')
          assertCredits(answer, credits)
          const id = toId(answer)
          if (submit.seconds > 10) {
            const { status, metadata } = toResult(await tests.fetchResult(kind, id, '?wait=1'), 200)
            assert.deepEqual([status, metadata?.test], ['pending', 'true'])
            return
          }
          const result = await tests.complete(kind, id)
          const { status, signals, metadata } = result
          assert.deepEqual([status, signals, metadata?.test], [submit.status, submit.signals, 'true'])
          assert(toSeconds(result) >= submit.seconds, `${toSeconds(result)} s`)
        })
      }
    }
  }
})

/** The duration of a scan. 0.02 s are added, because a timer may fire early by another clock. */
const toSeconds = (result: ScanResult) =>
  0.02 + (Date.parse(result.completed_at ?? '') - Date.parse(result.created_at)) / 1000

describe('a test key', () => {
  test('gets a threat for EICAR, with the true facts about the content', async () => {
    const { status, signals, content_length, metadata } = toVerdict(await tests.sendFile('malware', 'scan', eicar))
    assert.deepEqual([status, signals, content_length], ['threat', ['Virus:Eicar-Test-Signature'], 68])
    assert.equal(metadata.hash_sha256, '275a021bbfb6489e54d471899f7db9d1663fc695ec2fe2a2c4538aabf651fd0f')
  })

  test('has the same input checks as other keys', async () => {
    const invalid = (answer: Answer, field: string) =>
      assertProblem(answer, { status: 422, kind: 'validation', errors: [field] })
    await invalid(
      await tests.sendFile('nsfw/images', 'scan', 'no picture', { file_name: 'assay-test-sexy.jpg' }),
      'file',
    )
    await invalid(await tests.sendFile('malware', 'submit', ''), 'file')
    await invalid(await tests.sendFile('nsfw/images', 'submit', images['one.png'], { file_name: 'a.txt' }), 'file_name')
    await invalid(await tests.sendUrl('malware', 'scan', 'http://127.0.0.1/assay-test-clean'), 'file_url')
    await invalid(
      await tests.sendUrl('malware', 'submit', goodUrl, { callback_url: 'http://10.0.0.1/' }),
      'callback_url',
    )
  })

  for (const operation of operations) {
    test(`is refused as its header demands: ${operation.id}`, async () => {
      const send = (value: string | string[]) => {
        const request = toRequest(operation)
        return sendAs(testKey, { ...request, headers: { ...request.headers, [headers.test]: value } })
      }
      const [broke, limited, failed, overloaded] = await Promise.all(testAnswers.map((value) => send(value)))
      assert(broke && limited && failed && overloaded)
      assertEmpty(broke, 403)
      await assertProblem(limited, { status: 429, kind: 'rate-limited' })
      assert.deepEqual([limited.headers['retry-after'], limited.headers['x-rate-limit-limit']], ['1', undefined])
      await assertProblem(failed, { status: 500, kind: 'engine-unavailable' })
      await assertProblem(overloaded, { status: 503, kind: 'overloaded' })
      assert.equal(overloaded.headers['retry-after'], '1')
      for (const answer of [broke, limited, failed, overloaded]) assertCredits(answer, credits)
      for (const value of ['', 'nonsense', ['overloaded', 'overloaded']]) {
        await assertProblem(await send(value), { status: 422, kind: 'validation', errors: [headers.test] })
      }
    })
  }

  test('is counted apart in the metrics', async () => {
    const readCounts = async () => {
      const text = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
      const read = (name: string) =>
        Number(new RegExp(`^${name}\\{[^}]*kind="malware"[^}]*\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
      return { tests: read('assay_test_scans_total'), text }
    }
    const { tests: counted } = await readCounts()
    toVerdict(await tests.sendFile('malware', 'scan', 'counted'))
    await waitUntil('the test to be counted', async () => (await readCounts()).tests > counted)
    assert.match((await readCounts()).text, /assay_http_request_duration_seconds_count\{[^}]*operation="test"/)
  })
})

describe('a key that is not for tests', () => {
  test('ignores the file names and the header of test mode, and finds EICAR under any name', async () => {
    const header = { [headers.test]: 'out-of-credits' }
    const scanned = [
      await live.sendFile('malware', 'scan', 'harmless', { file_name: 'assay-test-threat.txt' }, header),
      await live.sendUrl('nsfw/images', 'scan', goodUrl, { file_name: 'assay-test-pornography.png' }, header),
    ].map((answer) => toVerdict(answer))
    for (const { status, metadata } of scanned) assert.deepEqual([status, metadata.test], ['clean', undefined])

    const { status, metadata } = toVerdict(
      await live.sendFile('malware', 'scan', eicar, { file_name: 'assay-test-clean.txt' }, header),
    )
    assert.deepEqual([status, metadata.test], ['threat', undefined])
    assert.notEqual(metadata.engine_versions, 'Assay test mode')

    const id = toId(await live.sendFile('malware', 'submit', eicar, { file_name: 'assay-test-pending.txt' }, header))
    assert.equal((await live.complete('malware', id)).status, 'threat')
    assert.equal(await live.readSpent(), 4, 'and pays')
  })

  test('never gets a result of a test key, nor the other way round', async () => {
    const ofTest = toVerdict(await tests.sendFile('malware', 'scan', 'mine'))
    const ofLive = toVerdict(await live.sendFile('malware', 'scan', 'mine'))
    const pending = toId(await tests.sendFile('malware', 'submit', 'mine', { file_name: 'assay-test-pending' }))
    toResult(await tests.fetchResult('malware', ofTest.id), 200)
    toResult(await live.fetchResult('malware', ofLive.id), 200)
    for (const answer of [
      await live.fetchResult('malware', ofTest.id),
      await live.fetchResult('malware', pending),
      await tests.fetchResult('malware', ofLive.id),
    ]) {
      await assertProblem(answer, { status: 422, kind: 'validation', errors: ['id'] })
    }
  })

  test('does not share idempotency keys with a test key', async () => {
    const header = { [headers.idempotencyKey]: randomUUID() }
    const send = (caller: typeof tests) =>
      caller.sendFile('malware', 'scan', eicar, { file_name: 'assay-test-clean' }, header)
    const first = toVerdict(await send(tests))
    assert.equal(first.status, 'clean')
    const second = toVerdict(await send(live))
    assert.deepEqual([second.status, second.metadata.test], ['threat', undefined])
    assert.equal(toVerdict(await send(tests)).id, first.id)
    assert.equal(toVerdict(await send(live)).id, second.id)
  })
})

describe('a test key of an account without credits', () => {
  test('still works, and can be the first key of an account', async () => {
    const { api_key: key } = await service.createAccount('--credits', '0', '--test-key')
    assert.match(key, /^assay_test_/)
    const answer = await makeCaller(service.url, key).sendFile('malware', 'scan', 'free')
    assert.equal(toVerdict(answer).status, 'clean')
    assertCredits(answer, 0)
  })
})
