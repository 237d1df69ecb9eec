import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import {
  AssayError,
  newClient,
  OutOfCredits,
  Overloaded,
  RateLimited,
  ServerError,
  ValidationFailed,
} from '@assay/client'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { findDeadUrl, openHostile } from './hostile.ts'

const service = getSharedService()

/** The error that a call ends with. */
async function getError(call: Promise<unknown>): Promise<AssayError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  assert(error instanceof AssayError, `${error}`)
  assert.match(error.message, /^\S.*\.$|: \S+$/, 'a sentence')
  return error
}

const { api_key: apiKey } = await service.createAccount()

describe('a refusal of the service', () => {
  const newOwn = () => newClient({ apiKey, baseUrl: service.url })

  test('of a key is Unauthorized, also for a file that is never sent', async () => {
    const { ping, malware } = newClient({ apiKey: 'assay_wrong', baseUrl: service.url })
    let sent = 0
    const large = Buffer.alloc(50 * 1024 * 1024)
    const onProgress = (progress: { sent: number }) => {
      sent = progress.sent
    }
    const stream = Readable.from([large])
    for (const call of [ping, () => malware.scanFile(large, { onProgress }), () => malware.scanFile(stream)]) {
      const error = await getError(call())
      assert.equal(error.name, 'Unauthorized')
      assert.equal(error.status, 401)
      assert.match(error.message, /does not accept this API key/)
    }
    assert.equal(sent, 0)
  })

  test('without credits is OutOfCredits, with the credits', async () => {
    const { api_key } = await service.createAccount('--credits', '0')
    const error = await getError(
      newClient({ apiKey: api_key, baseUrl: service.url }).malware.scanFile(Buffer.from('x')),
    )
    assert(error instanceof OutOfCredits)
    assert.equal(error.status, 403)
    assert.equal(error.meta?.credits?.remaining, 0)
  })

  test('of fields is ValidationFailed, with all of them and a trace id', async () => {
    const { nsfw, malware } = newOwn()
    const error = await getError(nsfw.images.submitUrl('ftp://x', { fileName: 'a.exe', callbackUrl: '/hook' }))
    assert(error instanceof ValidationFailed)
    assert.equal(error.status, 422)
    assert.deepEqual(Object.keys(error.errors).sort(), ['callback_url', 'file_name', 'file_url'])
    assert.match(error.message, /file_url must be .* callback_url must be /)
    assert.match(error.traceId ?? '', /^00-[0-9a-f]{32}-/)
    assert.equal(error.problem?.instance, '/v1/nsfw/images/submit/url')
    for (const id of ['0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b', '../me', '']) {
      assert(['ValidationFailed', 'NotFound'].includes((await getError(malware.getResult(id))).name), id)
    }
    const tooLarge = await getError(nsfw.images.scanFile(Buffer.alloc(9 * 1024 * 1024)))
    assert.match(tooLarge.message, /file must not be larger than 8 MB/)
  })

  test('of too many requests is RateLimited, with the time to wait, when that is longer than it waits', async () => {
    const account = await service.createAccount('--rate', '1/5m')
    const { ping } = newClient({ apiKey: account.api_key, baseUrl: service.url })
    await ping()
    const error = await getError(ping())
    assert(error instanceof RateLimited)
    assert.equal(error.status, 429)
    assert(error.retryAfter !== undefined && error.retryAfter > 60 && error.retryAfter <= 300)
    assert.match(error.message, /Try again in \d+ s\.$/)
    assert.equal(error.meta?.attempts, 1)
  })

  test('has a type of its own for every status', async (t) => {
    const names: Record<number, string> = {
      400: 'BadRequest',
      404: 'NotFound',
      405: 'BadRequest',
      408: 'BadRequest',
      413: 'BadRequest',
      415: 'UnsupportedMediaType',
      431: 'BadRequest',
      500: 'ServerError',
      502: 'ServerError',
      503: 'Overloaded',
    }
    const traceId = '00-861b31e3c9e762f383db108216a6e563-ea31d25c1dc6b6e9-01'
    const hostile = await openHostile(t, ({ path }) => {
      const status = Number(path.split('/').at(-1))
      return { status, json: { title: 'T', status, detail: 'It is so.', traceId }, headers: { 'retry-after': '7' } }
    })
    const { malware } = newClient({ apiKey: 'key', baseUrl: hostile.url, retries: 0 })
    for (const [status, name] of Object.entries(names)) {
      const error = await getError(malware.getResult(status))
      assert.equal(error.name, name, status)
      assert.equal(error.status, Number(status))
      assert.equal(error.traceId, traceId)
      assert.match(error.message, /It is so\./)
    }
    const overloaded = await getError(malware.getResult('503'))
    assert(overloaded instanceof Overloaded && overloaded instanceof ServerError)
    assert.equal(overloaded.retryAfter, 7)
  })
})

describe('what is no answer of Assay', () => {
  test('is never taken for a result', async (t) => {
    const id = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'
    const answers = [
      { text: '<html>Welcome</html>' },
      { json: {} },
      { json: [] },
      { json: null },
      { json: { id } },
      { json: { id, status: 'fine' } },
      { json: { id: 1, status: 'clean' } },
      { text: '{"id":"' },
      { text: 'x'.repeat(3 * 1024 * 1024) },
      { status: 302, headers: { location: 'https://elsewhere.example/' } },
      { status: 404, text: '<html>Not Found</html>' },
    ]
    const hostile = await openHostile(t, ({ count }) => answers[count] ?? 'reset')
    const clients = [newClient({ apiKey: 'key', baseUrl: hostile.url, retries: 0 })]
    for (const { malware } of clients) {
      for (const { text } of answers) {
        const error = await getError(malware.scanFile(Buffer.from('x')))
        assert.equal(error.name, 'UnexpectedAnswer', text)
        assert.match(error.message, /Check that baseUrl is the address of Assay/)
      }
    }
  })

  test('is told apart from no answer at all', async () => {
    const baseUrl = await findDeadUrl()
    for (const options of [{}, { fetch }]) {
      const { ping, malware } = newClient({ apiKey: 'key', baseUrl, retries: 0, ...options })
      for (const call of [
        ping,
        () => malware.scanFile(Buffer.from('x')),
        () => malware.scanFile(Readable.from(['x'])),
      ]) {
        const error = await getError(call())
        assert.equal(error.name, 'ConnectionFailed')
        assert.match(error.message, /^Nothing listens at 127\.0\.0\.1:\d+\. Check/)
      }
    }
    const error = await getError(newClient({ apiKey: 'key', baseUrl: 'http://no.invalid', retries: 0 }).ping())
    assert.match(error.message, /no host by the name of|could not be looked up of no\.invalid/)
  })
})

describe('content that cannot be sent', () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-client-'))
  const file = (name: string) => join(dir, name)
  const { malware } = newClient({ apiKey, baseUrl: service.url })
  before(() => {
    writeFileSync(file('empty'), '')
    writeFileSync(file('secret'), 'x')
    chmodSync(file('secret'), 0)
    execFileSync('mkfifo', [file('pipe')])
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  test('is told in a sentence', async () => {
    const broken = new Readable({ read: () => broken.destroy(new Error('the disk is gone')) })
    const cases: [input: Parameters<typeof malware.scanFile>[0], message: RegExp][] = [
      [file('missing'), /^There is no file .*missing\. Check the path\.$/],
      [file('empty/below'), /^There is no file .*below\. Check the path\.$/],
      [dir, /is a directory\. Give the path of a file\.$/],
      [file('empty'), /empty is empty\. There is nothing to scan in it\.$/],
      [file('pipe'), /pipe is no regular file\. Give a stream of it instead\.$/],
      [Buffer.alloc(0), /^The buffer is empty\./],
      [new Blob([]), /^The blob is empty\./],
      [Readable.from([]), /^The stream is empty\./],
      [Readable.from([7]), /^The stream gave a value of type number\. It must give bytes\.$/],
      [broken, /^The stream could not be read to its end: the disk is gone/],
      [
        undefined as unknown as string,
        /^Cannot scan a value of type undefined\. Give a path, bytes, a Blob or a stream\.$/,
      ],
    ]
    for (const [input, message] of cases) {
      const error = await malware.scanFile(input).catch((reason: unknown) => reason)
      assert(error instanceof AssayError, `${error}`)
      assert.equal(error.name, 'UnusableInput', String(message))
      assert.match(error.message, message)
    }
  })

  test('is a file without permission', async () => {
    // Root may read everything, so for this it is nobody.
    if (process.getuid?.() === 0) process.seteuid?.(65534)
    const call = malware.scanFile(file('secret'))
    await call.catch(() => {})
    if (process.getuid?.() === 0) process.seteuid?.(0)
    assert.match((await getError(call)).message, /^There is no permission to read .*secret\.$/)
  })
})

test('mistakes in the options are told when the client is made', () => {
  const good = { apiKey: 'key', baseUrl: 'https://scan.example.com' }
  const cases: [options: object, message: RegExp][] = [
    [{ apiKey: '' }, /^apiKey must be/],
    [{ apiKey: 'a key\n' }, /^apiKey must be/],
    [{ apiKey: undefined }, /^apiKey must be/],
    [{ baseUrl: undefined }, /^baseUrl must be/],
    [{ baseUrl: 'scan.example.com' }, /^baseUrl must be/],
    [{ baseUrl: 'ftp://scan.example.com' }, /^baseUrl must be/],
    [{ baseUrl: 'https://me:pw@scan.example.com' }, /user name or password/],
    [{ region: 'eu' }, /^region needs a baseUrl with \{region\}/],
    [{ baseUrl: 'https://{region}.example.com' }, /give region as well/],
    [{ baseUrl: 'https://{region}.example.com', region: 'evil.test/' }, /^region must be/],
    [{ timeoutMs: 0 }, /^timeoutMs/],
    [{ retries: -1 }, /^retries/],
    [{ retries: 1.5 }, /^retries/],
  ]
  for (const [wrong, message] of cases) {
    assert.throws(() => newClient({ ...good, ...wrong }), { name: 'TypeError', message })
  }
})

test('a region is put into the address', async (t) => {
  const hostile = await openHostile(t, () => ({}))
  const baseUrl = hostile.url.replace('127.0.0.1', '127.0.0.{region}')
  const { ping } = newClient({ apiKey: 'key', baseUrl, region: '1' })
  await ping()
  assert.equal(hostile.requests.length, 1)
})
