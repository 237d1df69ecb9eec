import assert from 'node:assert/strict'
import { test } from 'node:test'
import type * as client from '@assay/client'
import { newClient } from '@assay/client'
import type * as contract from '@assay/contract'
import { headers, maxWaitSeconds, operations } from '@assay/contract'
import { newResult, openFakeServer } from './fake-server.ts'

/** True only for identical types; types that are merely assignable give false. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Flat<T> = { [K in keyof T]: T[K] }

/** These lines do not compile if the types of the client differ from the contract. */
export const sameScanResult: Same<Flat<client.ScanResult>, Flat<contract.ScanResult>> = true
export const sameStatus: Same<client.ScanStatus, contract.ScanResultType> = true
export const sameAccount: Same<Flat<client.Account>, Flat<contract.Account>> = true
export const sameDeliveries: Same<client.DeliveryList, contract.DeliveryList> = true
export const sameProblem: Same<Flat<client.ProblemDetails>, Flat<contract.ProblemDetails>> = true
export const sameValidationProblem: Same<
  Flat<client.ValidationProblemDetails>,
  Flat<contract.ValidationProblemDetails>
> = true

type Scanned = Awaited<ReturnType<client.Scans['scanFile']>>
/** A caller of `scanFile` needs no branch for a pending scan, nor for missing signals. */
export const isComplete: Same<Scanned['status'], 'clean' | 'threat' | 'error'> = true
export const hasSignals: Same<Scanned['signals'], string[]> = true

const result = newResult()
const { id } = result
const account = { plan: 'p', credit_limit: 1, credit_remaining: 1 }

test('a complete result has signals, also when the service leaves them out', async (t) => {
  const { signals: _signals, ...without } = result
  for (const answer of [without, { ...result, signals: null }]) {
    const fake = await openFakeServer(t, () => ({ json: answer }))
    const { malware } = newClient({ apiKey: 'key', baseUrl: fake.url })
    assert.deepEqual((await malware.scanFile(Buffer.from('x'))).signals, [])
    assert.deepEqual((await malware.waitFor(id)).signals, [])
  }
})

test('a pending result is no answer to a scan', async (t) => {
  const fake = await openFakeServer(t, () => ({ json: { ...result, status: 'pending', signals: null } }))
  const { malware } = newClient({ apiKey: 'key', baseUrl: fake.url, retries: 0 })
  await assert.rejects(malware.scanFile(Buffer.from('x')), { name: 'UnexpectedAnswer' })
})

test('every operation of the API has one function that sends its method, path and key', async (t) => {
  const fake = await openFakeServer(t, ({ path }) => ({ json: path === '/v1/me' ? account : result }))
  const { malware, nsfw, account: me, ping } = newClient({ apiKey: 'key', baseUrl: fake.url })
  for (const scans of [malware, nsfw.images]) {
    await scans.getResult(id)
    await scans.scanFile(Buffer.from('x'))
    await scans.scanUrl('https://example.com/')
    await scans.submitFile(Buffer.from('x'))
    await scans.submitUrl(new URL('https://example.com/'))
  }
  await me()
  await ping()
  const expected = operations.map(({ method, path }) => `${method} ${path.replace('{id}', id)}`)
  assert.deepEqual(
    fake.requests.map(({ method, path }) => `${method} ${path}`),
    expected,
  )
  for (const { method, headers: sent } of fake.requests) {
    assert.equal(sent[headers.apiKey.toLowerCase()], 'key')
    const key = sent[headers.idempotencyKey.toLowerCase()]
    assert(method === 'GET' ? key === undefined : /^\S{16,}$/.test(String(key)), `${method} with key ${key}`)
  }
  const keys = fake.requests.flatMap(({ headers: sent }) => sent[headers.idempotencyKey.toLowerCase()] ?? [])
  assert.equal(new Set(keys).size, 8, 'every call has its own key')
})

test('a signed receipt is returned as text, and its absence is an error', async (t) => {
  const fake = await openFakeServer(t, ({ path }) => ({
    json: path.startsWith('/v1/malware') ? { ...result, metadata: { receipt: 'a.b.c' } } : result,
  }))
  const { malware, nsfw } = newClient({ apiKey: 'key', baseUrl: fake.url, retries: 0 })
  assert.equal(await malware.getSignedReceipt(id), 'a.b.c')
  await assert.rejects(nsfw.images.getSignedReceipt(id), { name: 'UnexpectedAnswer' })
  assert.deepEqual(
    fake.requests.map(({ path }) => path),
    [`/v1/malware/${id}?receipt=1`, `/v1/nsfw/images/${id}?receipt=1`],
  )
})

test('waitFor requests the longest wait that the service supports', async (t) => {
  const fake = await openFakeServer(t, () => ({ json: result }))
  await newClient({ apiKey: 'key', baseUrl: fake.url }).malware.waitFor(id)
  assert.deepEqual(
    fake.requests.map(({ path }) => path),
    [`/v1/malware/${id}?wait=${maxWaitSeconds}`],
  )
})
