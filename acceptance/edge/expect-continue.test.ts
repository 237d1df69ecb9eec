import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { boundary, filePart, formType, toForm } from '../support/forms.ts'
import { openRaw, toStatuses } from '../support/raw-socket.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const { host } = new URL(service.url)
const form = toForm([filePart('hello')], boundary)
let key = ''
before(async () => {
  key = (await service.createAccount()).api_key
})

const toHead = (...lines: string[]) =>
  [
    'POST /v1/malware/submit/file HTTP/1.1',
    `Host: ${host}`,
    `Content-Length: ${form.length}`,
    'Connection: close',
    ...lines,
    '',
    '',
  ].join('\r\n')

test('an invalid key is refused before 100 Continue', async () => {
  for (const lines of [[], ['X-API-Key: wrong']]) {
    const connection = await openRaw(service.url)
    await connection.send(toHead('Expect: 100-continue', `Content-Type: ${formType}`, ...lines))
    assert.deepEqual(toStatuses(await connection.readToEnd()), [401])
  }
})

test('an unsupported media type is refused before 100 Continue', async () => {
  const connection = await openRaw(service.url)
  await connection.send(toHead('Expect: 100-continue', 'Content-Type: text/plain', `X-API-Key: ${key}`))
  assert.deepEqual(toStatuses(await connection.readToEnd()), [415])
})

test('a file that is announced beyond the limit is refused before 100 Continue, and one at the limit is read', async () => {
  const limit = 250 * 1024 * 1024
  for (const [bytes, status] of [
    [limit + 1024 * 1024 + 1, 422],
    [limit + 1024 * 1024, 100],
  ] as const) {
    const connection = await openRaw(service.url)
    const head = toHead('Expect: 100-continue', `Content-Type: ${formType}`, `X-API-Key: ${key}`)
    await connection.send(head.replace(/Content-Length: \d+/, `Content-Length: ${bytes}`))
    const answer = await connection.readAnswer()
    assert.equal(answer.status, status)
    if (status === 422) assert.match(answer.text, /"file":\["file must not be larger than 250 MB\."\]/)
    connection.leave()
  }
})

test('a valid key gets 100 Continue, in any spelling of Expect, and then its response', async () => {
  for (const expect of ['100-continue', '100-Continue']) {
    const connection = await openRaw(service.url)
    await connection.send(toHead(`Expect: ${expect}`, `Content-Type: ${formType}`, `X-API-Key: ${key}`))
    assert.equal((await connection.readAnswer()).status, 100)
    await connection.send(form)
    const answers = await connection.readToEnd()
    assert.equal(answers.length, 1)
    // Either response answers the whole request; which one depends on the engines of this machine.
    assert.match(answers[0]?.text ?? '', /"id"|engine-unavailable/)
  }
})

test('a body that is sent without waiting for 100 Continue is read', async () => {
  const connection = await openRaw(service.url)
  await connection.send(toHead('Expect: 100-continue', `Content-Type: ${formType}`, `X-API-Key: ${key}`))
  await connection.send(form)
  const answers = await connection.readToEnd()
  assert.match(answers.at(-1)?.text ?? '', /"id"|engine-unavailable/)
})

test('after a refusal nothing more is read from the connection as a request', async () => {
  const connection = await openRaw(service.url)
  await connection.send(toHead('Expect: 100-continue', `Content-Type: ${formType}`))
  assert.equal((await connection.readAnswer()).status, 401)
  await connection.send(`GET /v1/ping HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${key}\r\n\r\n`)
  assert.deepEqual(await connection.readToEnd(), [])
})

test('a request without a body may expect 100 Continue', async () => {
  const connection = await openRaw(service.url)
  const lines = [`Host: ${host}`, `X-API-Key: ${key}`, 'Expect: 100-continue', '', '']
  await connection.send(`GET /v1/ping HTTP/1.1\r\n${lines.join('\r\n')}`)
  assert.equal((await connection.readAnswer()).status, 200)
  connection.leave()
})
