import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { boundary, filePart, formType, toForm } from '../support/forms.ts'
import { openRaw } from '../support/raw-socket.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const { host } = new URL(service.url)
const form = toForm([filePart('hello')], boundary)
let key = ''
before(async () => {
  key = (await service.createAccount()).api_key
})

const invite = (...lines: string[]) =>
  [
    'POST /v1/malware/submit/file HTTP/1.1',
    `Host: ${host}`,
    `Content-Length: ${form.length}`,
    'Connection: close',
    ...lines,
    '',
    '',
  ].join('\r\n')

test('a wrong key is refused before the body is invited', async () => {
  for (const lines of [[], ['X-API-Key: wrong']]) {
    const connection = await openRaw(service.url)
    await connection.send(invite('Expect: 100-continue', `Content-Type: ${formType}`, ...lines))
    const answers = await connection.readToEnd()
    assert.deepEqual(
      answers.map(({ status }) => status),
      [401],
    )
  }
})

test('a body of the wrong type is refused before it is invited', async () => {
  const connection = await openRaw(service.url)
  await connection.send(invite('Expect: 100-continue', 'Content-Type: text/plain', `X-API-Key: ${key}`))
  const answers = await connection.readToEnd()
  assert.deepEqual(
    answers.map(({ status }) => status),
    [415],
  )
})

test('a good key is invited to send its body, in any spelling, and then answered', async () => {
  for (const expect of ['100-continue', '100-Continue']) {
    const connection = await openRaw(service.url)
    await connection.send(invite(`Expect: ${expect}`, `Content-Type: ${formType}`, `X-API-Key: ${key}`))
    assert.equal((await connection.readAnswer()).status, 100)
    await connection.send(form)
    const answers = await connection.readToEnd()
    assert.equal(answers.length, 1)
    // An answer to the whole request, whatever engine is or is not there to scan it.
    assert.match(answers[0]?.text ?? '', /"id"|engine-unavailable/)
  }
})

test('a body that was not invited but sent all the same is read', async () => {
  const connection = await openRaw(service.url)
  await connection.send(invite('Expect: 100-continue', `Content-Type: ${formType}`, `X-API-Key: ${key}`))
  await connection.send(form)
  const answers = await connection.readToEnd()
  assert.match(answers.at(-1)?.text ?? '', /"id"|engine-unavailable/)
})

test('a refusal leaves nothing behind that could be read as the next request', async () => {
  const connection = await openRaw(service.url)
  await connection.send(invite('Expect: 100-continue', `Content-Type: ${formType}`))
  assert.equal((await connection.readAnswer()).status, 401)
  await connection.send(`GET /v1/ping HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${key}\r\n\r\n`)
  assert.deepEqual(await connection.readToEnd(), [])
})

test('a request without a body needs no invitation', async () => {
  const connection = await openRaw(service.url)
  const lines = [`Host: ${host}`, `X-API-Key: ${key}`, 'Expect: 100-continue', '', '']
  await connection.send(`GET /v1/ping HTTP/1.1\r\n${lines.join('\r\n')}`)
  assert.equal((await connection.readAnswer()).status, 200)
  connection.leave()
})
