import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { makeAuthorizeDownload } from '../../src/domain/downloads/credentials.ts'
import { type CredentialValues, readHostTarget } from '../../src/domain/downloads/target.ts'
import type { DownloadAuthorization } from '../../src/domain/ports/content-store.ts'
import { signObject } from '../../src/outbound/s3-signature.ts'
import { assertFailed, getContent, newFetching } from './fetching.ts'
import { newAnswer, openOrigin } from './origins.ts'

const readCertificate = (name: string) => readFileSync(new URL(`certificates/${name}`, import.meta.url), 'utf8')
const secret = 'Bearer sw0rdfish'
const content = newAnswer('200 OK\nContent-Length: 5', 'hello')
const redirect = (location: string) => newAnswer(`302 Found\nLocation: ${location}\nContent-Length: 0`)
const authorization: DownloadAuthorization = {
  headers: { authorization: secret, 'user-agent': 'fetcher' },
  isForOneAddress: false,
  needsOpenedNetwork: false,
}

/** For each request, its path and whether it had the credential. */
const listSent = (heard: string[]) => heard.map((text) => [text.split(' ')[1], text.includes('sw0rdfish')])

type Step = [from: string, to: string]

/** Two origins, of which the first and the second are named `a` and `b`, that redirect as the steps say. */
async function follow(t: Parameters<typeof openOrigin>[0], steps: Step[], first = '/1') {
  const answer = (socket: Parameters<Parameters<typeof openOrigin>[1]>[0], path: string) => {
    const to = steps.find(([from]) => from === path)?.[1]
    const target = to?.replace('PORT-A', String(a.port)).replace('PORT-B', String(b.port))
    socket.end(target === undefined ? content : redirect(target))
  }
  const a = await openOrigin(t, answer)
  const b = await openOrigin(t, answer)
  const names = { 'a.test': () => ['127.0.0.2'], 'b.test': () => ['127.0.0.2'] }
  const { fetch } = newFetching(t, { names })
  const result = await fetch(`http://a.test:${a.port}${first}`, { authorization })
  getContent(result)
  const use = 'content' in result ? result.credentialUse : undefined
  return { a: listSent(a.heard), b: listSent(b.heard), use }
}

describe('the headers of a credential', () => {
  test('are sent with the request, in place of those of Assay', async (t) => {
    const origin = await openOrigin(t, (socket) => socket.end(content))
    const { fetch } = newFetching(t)
    getContent(await fetch(`http://127.0.0.2:${origin.port}/x`, { authorization }))
    assert.match(origin.heard[0] ?? '', /\r\nauthorization: Bearer sw0rdfish\r\n/i)
    assert.match(origin.heard[0] ?? '', /\r\nuser-agent: fetcher\r\n/i)
    assert.equal(origin.heard[0]?.match(/user-agent/gi)?.length, 1)
    const without = await fetch(`http://127.0.0.2:${origin.port}/x`)
    getContent(without)
    assert.ok(!('credentialUse' in without))
    assert.doesNotMatch(origin.heard[1] ?? '', /sw0rdfish/)
  })

  test('follow redirects on the same server, however it is spelled', async (t) => {
    const { a, use } = await follow(t, [
      ['/1', '/2'],
      ['/2', 'http://A.TEST.:PORT-A/3'],
    ])
    assert.deepEqual(a, [
      ['/1', true],
      ['/2', true],
      ['/3', true],
    ])
    assert.equal(use, 'sent')
  })

  test('do not follow to another host, and are not sent when a redirect leads back', async (t) => {
    const { a, use } = await follow(t, [
      ['/1', 'http://b.test:PORT-A/2'],
      ['/2', 'http://a.test:PORT-A/3'],
      ['/3', '/4'],
    ])
    assert.deepEqual(a, [
      ['/1', true],
      ['/2', false],
      ['/3', false],
      ['/4', false],
    ])
    assert.equal(use, 'not sent after a redirect')
  })

  test('do not follow to another port', async (t) => {
    const { a, b } = await follow(t, [['/1', 'http://a.test:PORT-B/2']])
    assert.deepEqual([a, b], [[['/1', true]], [['/2', false]]])
  })

  test('do not follow from https to http, or from a name to its address', async (t) => {
    const trusted = getCACertificates('default')
    setDefaultCACertificates([...trusted, readCertificate('origin.crt')])
    t.after(() => setDefaultCACertificates(trusted))
    const plain = await openOrigin(t, (socket) => socket.end(content))
    const secure = await openOrigin(
      t,
      (socket, path) =>
        socket.end(path === '/a' ? redirect(`https://127.0.0.2:${secure.port}/b`) : redirect(toPlain(plain.port))),
      { server: createTlsServer({ cert: readCertificate('origin.crt'), key: readCertificate('origin.key') }) },
    )
    const { fetch } = newFetching(t, { names: { 'good.test': () => ['127.0.0.2'] } })
    getContent(await fetch(`https://good.test:${secure.port}/`, { authorization }))
    getContent(await fetch(`https://good.test:${secure.port}/a`, { authorization }))
    assert.deepEqual(listSent(secure.heard), [
      ['/', true],
      ['/a', true],
      ['/b', false],
    ])
    assert.deepEqual(listSent(plain.heard), [
      ['/plain', false],
      ['/plain', false],
    ])
  })

  test('are never sent again by a signature, not even to the same server', async (t) => {
    const origin = await openOrigin(t, (socket, path) => socket.end(path === '/%61' ? redirect('/b') : content))
    const { fetch } = newFetching(t)
    const signed = { ...authorization, requestTarget: '/%61', isForOneAddress: true }
    getContent(await fetch(`http://127.0.0.2:${origin.port}/a`, { authorization: signed }))
    assert.deepEqual(listSent(origin.heard), [
      ['/%61', true],
      ['/b', false],
    ])
  })

  test('go over http only to networks that the operator has opened, and not when a name changes', async (t) => {
    const origin = await openOrigin(t, (socket, path) => socket.end(path === '/hop' ? redirect('/') : content))
    const mixed = ['127.0.0.2', '8.8.8.8']
    const addresses = [['127.0.0.2'], mixed, ['127.0.0.2'], mixed]
    const names = { 'a.test': () => addresses.shift() ?? [] }
    const { fetch } = newFetching(t, { names })
    const plain = { ...authorization, needsOpenedNetwork: true }
    const url = `http://a.test:${origin.port}/`
    getContent(await fetch(url, { authorization: plain }))
    // The mixed name dials its first address, which answers; the credential stays here all the same.
    assertFailed(await fetch(url, { authorization: plain }), 'DownloadFailed', /over http it goes only to networks/)
    // After the redirect the name has a public address as well.
    const hop = await fetch(`${url}hop`, { authorization: plain })
    assertFailed(hop, 'DownloadFailed', /over http it goes only to networks/)
    assert.deepEqual(addresses, [])
    assert.equal(origin.heard.filter((text) => text.includes('sw0rdfish')).length, 2)
  })

  for (const status of [401, 403]) {
    test(`are not in the message of a ${status}, which tells whether they were sent`, async (t) => {
      const refusal = newAnswer(`${status} No\nContent-Length: 0`)
      const origin = await openOrigin(t, (socket, path) =>
        socket.end(path === '/away' ? redirect(`http://127.0.0.2:${origin.port}/x`) : refusal),
      )
      const { fetch } = newFetching(t, { names: { 'a.test': () => ['127.0.0.2'] } })
      const url = `http://a.test:${origin.port}`
      const sent = await fetch(`${url}/x`, { authorization })
      assertFailed(
        sent,
        'DownloadFailed',
        new RegExp(`^The host answered with status ${status}. The stored .* was sent`),
      )
      const dropped = await fetch(`${url}/away`, { authorization })
      assertFailed(dropped, 'DownloadFailed', /was not sent after the redirect/)
      const without = await fetch(`${url}/x`)
      assertFailed(without, 'DownloadFailed', new RegExp(`^The host answered with status ${status}.$`))
      assert.ok(!JSON.stringify([sent, dropped, without]).includes('sw0rdfish'))
    })
  }
})

const toPlain = (port: number) => `http://good.test:${port}/plain`

describe('a credential that is stored', () => {
  const target = readHostTarget('files.example.com')
  assert.ok(typeof target !== 'string')
  const row = { id: '1', target }
  const values: CredentialValues = { kind: 'headers', headers: [{ name: 'cookie', value: secret }] }
  const url = 'https://files.example.com/'
  const make = (credentials: Parameters<typeof makeAuthorizeDownload>[0]['credentials']) =>
    makeAuthorizeDownload({ credentials, signObject, clock: { now: () => new Date() } })

  test('and does not open, or is not of its kind, refuses the download', async () => {
    const list = async () => [row]
    for (const opened of ['sealed', { kind: 's3', accessKeyId: 'a', secretAccessKey: 'b' }] as const) {
      const authorize = make({ list, open: async () => opened })
      assert.deepEqual(await authorize('account', url), {
        failure: 'DownloadFailed',
        reason: 'The stored download credential cannot be opened; add it again.',
      })
      assert.equal(await authorize('account', 'https://other.example.com/'), undefined)
    }
  })

  test('again after it was removed is used by a download that had found the first one', async () => {
    const rows = [row, { ...row, id: '2' }]
    const open = async (_: string, id: string) => (id === '2' ? values : undefined)
    const authorize = make({ list: async () => rows.splice(0, 1), open })
    assert.deepEqual(await authorize('account', url), {
      headers: { cookie: secret },
      isForOneAddress: false,
      needsOpenedNetwork: false,
    })
  })

  test('is not needed after its removal, and refuses the download while it changes all the time', async () => {
    const rows = [row]
    assert.equal(await make({ list: async () => rows.splice(0, 1), open: async () => undefined })('a', url), undefined)
    const changing = await make({ list: async () => [row], open: async () => undefined })('a', url)
    assert.ok(changing !== undefined && 'failure' in changing)
  })
})
