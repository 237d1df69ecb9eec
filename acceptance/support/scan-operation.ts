import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headers } from '@assay/contract'
import type { Outgoing } from './http.ts'
import { type Subject, toRequest } from './operation.ts'
import { assertEmpty } from './problems.ts'

/** Rules that all scan operations share: media types, the order of checks, the charge. */
export function testScanOperation(subject: Subject) {
  const { operation, send, sendGood } = subject
  const good = toRequest(operation)
  const goodType = String(good.headers?.['content-type'])
  const unsupported = { status: 415, kind: 'unsupported-media-type' } as const
  const withType = (type: string | undefined, more = {}): Partial<Outgoing> => ({
    ...good,
    headers: { ...(type === undefined ? {} : { 'content-type': type }), ...more },
  })

  test('415: a body of another media type, or of none, is refused', async () => {
    const other = operation.does === 'file' ? 'application/json' : 'multipart/form-data; boundary=x'
    const types = ['text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream', other]
    for (const type of [undefined, ...types, 'application/problem+json', 'application/json5', 'multipart/mixed']) {
      await subject.assertRefused(await send(withType(type)), unsupported, `type ${type}`)
    }
  })

  test('415: an invalid Content-Type is refused', async () => {
    for (const type of ['', 'nonsense', 'application/', '/json']) {
      await subject.assertRefused(await send(withType(type)), unsupported, `type ${type}`)
    }
  })

  test('415: a compressed body is refused, whatever its compression', async () => {
    for (const encoding of ['gzip', 'br', 'gzip, identity', 'unheard-of']) {
      const answer = await send(withType(goodType, { 'content-encoding': encoding }))
      await subject.assertRefused(answer, unsupported, encoding)
    }
    await subject.assertAccepted(await send(withType(goodType, { 'content-encoding': 'identity' })))
  })

  test('media types are compared without regard to case and to blanks around parameters', async () => {
    const [essence = '', ...parameters] = goodType.split(';')
    const types = [[essence.toUpperCase(), ...parameters].join(' ; '), [` ${essence}`, ...parameters].join(';  ')]
    for (const type of types) await subject.assertAccepted(await send(withType(type)), type)
  })

  test('a valid request gets a result or the identifier of a job, and costs one credit', async () => {
    await subject.assertAccepted(await sendGood())
    await subject.assertNothingElseCharged()
  })

  test('a body sent in small chunks without a length is read like any other', async () => {
    const bytes = Buffer.from(good.body as Buffer)
    const chunks = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) => bytes.subarray(i * 7, i * 7 + 7))
    await subject.assertAccepted(await send({ ...good, body: chunks }))
  })

  test('checks run in this order: the key, then the media type, then the body', async () => {
    assertEmpty(await send(withType('text/plain', { [headers.apiKey]: 'unknown' })), 401)
    await subject.assertRefused(await send({ ...withType('text/plain'), body: '{' }), unsupported)
    await subject.assertRefused(await send({ ...good, body: '{' }), { status: 400, kind: 'malformed-request' })
  })

  test('a caller’s trace is continued in the traceId', async () => {
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
    const traceparent = `00-${trace}-00f067aa0ba902b7-01`
    const answer = await send(withType('text/plain', { traceparent }))
    assert.match(JSON.parse(answer.text).traceId, new RegExp(`^00-${trace}-`))
  })
}

/** Call this last in a file, after all refused requests. */
export function testNothingWasCharged(subject: Subject) {
  test('no refused request costs a credit', () => subject.assertNothingElseCharged())
}
