import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import {
  AssayError,
  NotPermitted,
  newClient,
  OutOfCredits,
  Overloaded,
  RateLimited,
  ServerError,
  ValidationFailed,
} from '@assay/client'
import { getSharedService } from '../../../acceptance/support/shared-service.ts'
import { findUnusedUrl, openFakeServer, scanId } from './fake-server.ts'

const service = getSharedService()

/** The error that a call rejects with. */
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

describe('an error response of the service', () => {
  const newOwn = () => newClient({ apiKey, baseUrl: service.url })

  test('401 is Unauthorized, and a large file is not sent', async () => {
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

  test('403 is OutOfCredits, with the credits', async () => {
    const { api_key } = await service.createAccount('--credits', '0')
    const error = await getError(
      newClient({ apiKey: api_key, baseUrl: service.url }).malware.scanFile(Buffer.from('x')),
    )
    assert(error instanceof OutOfCredits)
    assert.equal(error.status, 403)
    assert.equal(error.meta?.credits?.remaining, 0)
  })

  test('403 with a reason is NotPermitted, with the reason', async () => {
    const { id } = await service.createAccount()
    const options = ['--account', id, '--allow', 'read', '--networks', '::1,127.0.0.0/8']
    const { api_key } = (await service.operate('keys', 'create', ...options)) as { api_key: string }
    const error = await getError(
      newClient({ apiKey: api_key, baseUrl: service.url }).malware.scanFile(Buffer.from('x')),
    )
    assert(error instanceof NotPermitted)
    assert.equal(error.status, 403)
    assert.equal(error.message, 'This API key may not scan synchronously. It is restricted to: read.')
  })

  test('422 is ValidationFailed, with all fields and a trace id', async () => {
    const { nsfw, malware } = newOwn()
    const error = await getError(nsfw.images.submitUrl('ftp://x', { fileName: 'a.exe', callbackUrl: '/hook' }))
    assert(error instanceof ValidationFailed)
    assert.equal(error.status, 422)
    assert.deepEqual(Object.keys(error.errors).sort(), ['callback_url', 'file_name', 'file_url'])
    assert.match(error.message, /file_url must be .* callback_url must be /)
    assert.match(error.traceId ?? '', /^00-[0-9a-f]{32}-/)
    assert.equal(error.problem?.instance, '/v1/nsfw/images/submit/url')
    for (const id of [scanId, '../me', '']) {
      assert(['ValidationFailed', 'NotFound'].includes((await getError(malware.getResult(id))).name), id)
    }
    const tooLarge = await getError(nsfw.images.scanFile(Buffer.alloc(9 * 1024 * 1024)))
    assert.match(tooLarge.message, /file must not be larger than 8 MB/)
  })

  test('429 with a long Retry-After is RateLimited, with the seconds to wait', async () => {
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

  test('each status has its error type', async (t) => {
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
    const fake = await openFakeServer(t, ({ path }) => {
      const status = Number(path.split('/').at(-1))
      return { status, json: { title: 'T', status, detail: 'It is so.', traceId }, headers: { 'retry-after': '7' } }
    })
    const { malware } = newClient({ apiKey: 'key', baseUrl: fake.url, retries: 0 })
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

describe('a response that is not from Assay', () => {
  test('is never used as a result', async (t) => {
    const id = scanId
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
    const fake = await openFakeServer(t, ({ count }) => answers[count] ?? 'reset')
    const { malware } = newClient({ apiKey: 'key', baseUrl: fake.url, retries: 0 })
    for (const { text } of answers) {
      const error = await getError(malware.scanFile(Buffer.from('x')))
      assert.equal(error.name, 'UnexpectedAnswer', text)
      assert.match(error.message, /Check that baseUrl is the address of Assay/)
    }
  })

  test('differs from a failed connection', async () => {
    const baseUrl = await findUnusedUrl()
    for (const options of [{}, { fetch }]) {
      const { ping, malware } = newClient({ apiKey: 'key', baseUrl, retries: 0, ...options })
      for (const call of [
        ping,
        () => malware.scanFile(Buffer.from('x')),
        () => malware.scanFile(Readable.from(['x'])),
      ]) {
        const error = await getError(call())
        assert.equal(error.name, 'ConnectionFailed')
        assert.match(error.message, /^Cannot reach 127\.0\.0\.1:\d+: the connection was refused\. Check/)
      }
    }
    const error = await getError(newClient({ apiKey: 'key', baseUrl: 'http://no.invalid', retries: 0 }).ping())
    assert.match(error.message, /^Cannot reach no\.invalid: the host name (does not exist|could not be resolved)\./)
  })
})

describe('content that cannot be read', () => {
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

  test('is reported in a sentence', async () => {
    const broken = new Readable({ read: () => broken.destroy(new Error('the disk is gone')) })
    const cases: [input: Parameters<typeof malware.scanFile>[0], message: RegExp][] = [
      [file('missing'), /missing does not exist\. Check the path\.$/],
      [file('empty/below'), /below does not exist\. Check the path\.$/],
      [dir, /is a directory\. Pass the path of a file\.$/],
      [file('empty'), /empty is empty: there is nothing to scan\.$/],
      [file('pipe'), /pipe is not a regular file\. Pass a stream instead\.$/],
      [Buffer.alloc(0), /^The buffer is empty:/],
      [new Blob([]), /^The blob is empty:/],
      [Readable.from([]), /^The stream is empty:/],
      [Readable.from([7]), /^The stream produced a value of type number\. It must produce bytes\.$/],
      [broken, /^Reading the stream failed: the disk is gone/],
      [
        undefined as unknown as string,
        /^Cannot scan a value of type undefined\. Pass a path, bytes, a Blob or a stream\.$/,
      ],
    ]
    for (const [input, message] of cases) {
      const error = await malware.scanFile(input).catch((reason: unknown) => reason)
      assert(error instanceof AssayError, `${error}`)
      assert.equal(error.name, 'UnusableInput', String(message))
      assert.match(error.message, message)
    }
  })

  test('includes a file without permission', async () => {
    // Root can read every file, so the call runs as another user.
    if (process.getuid?.() === 0) process.seteuid?.(65534)
    const call = malware.scanFile(file('secret'))
    await call.catch(() => {})
    if (process.getuid?.() === 0) process.seteuid?.(0)
    assert.match((await getError(call)).message, /^Permission to read .*secret is denied\.$/)
  })
})

test('newClient throws on invalid options', () => {
  const good = { apiKey: 'key', baseUrl: 'https://scan.example.com' }
  const cases: [options: object, message: RegExp][] = [
    [{ apiKey: '' }, /^apiKey must be/],
    [{ apiKey: 'a key\n' }, /^apiKey must be/],
    [{ apiKey: undefined }, /^apiKey must be/],
    [{ baseUrl: undefined }, /^baseUrl must be/],
    [{ baseUrl: 'scan.example.com' }, /^baseUrl must be/],
    [{ baseUrl: 'ftp://scan.example.com' }, /^baseUrl must be/],
    [{ baseUrl: 'https://me:pw@scan.example.com' }, /user name or password\.$/],
    [{ region: 'eu' }, /^region requires a baseUrl that contains \{region\}/],
    [{ baseUrl: 'https://{region}.example.com' }, /set region as well/],
    [{ baseUrl: 'https://{region}.example.com', region: 'evil.test/' }, /^region must consist/],
    [{ timeoutMs: 0 }, /^timeoutMs/],
    [{ retries: -1 }, /^retries/],
    [{ retries: 1.5 }, /^retries/],
  ]
  for (const [wrong, message] of cases) {
    assert.throws(() => newClient({ ...good, ...wrong }), { name: 'TypeError', message })
  }
})

test('the region becomes part of the address', async (t) => {
  const fake = await openFakeServer(t, () => ({}))
  const baseUrl = fake.url.replace('127.0.0.1', '127.0.0.{region}')
  const { ping } = newClient({ apiKey: 'key', baseUrl, region: '1' })
  await ping()
  assert.equal(fake.requests.length, 1)
})
