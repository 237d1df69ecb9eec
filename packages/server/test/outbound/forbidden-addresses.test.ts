import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { notPublicHosts } from '../../../../acceptance/support/addresses.ts'
import { makeAddressPolicy } from '../../src/domain/scans/web-address.ts'
import { makeGuardedAgent } from '../../src/outbound/guarded-agent.ts'
import { OutboundError } from '../../src/outbound/outbound-error.ts'
import { assertFailed, newFetching } from './fetching.ts'
import { dialled, newAnswer, openOrigin } from './origins.ts'

/** Hosts with addresses that are not public, and names that mean loopback without any name server. */
const forbiddenHosts = [
  ...notPublicHosts,
  ...'localhost localhost. LOCALHOST a.localhost a.localhost. a.b.LocalHost %6c%6f%63alhost ｌｏｃａｌｈｏｓｔ'.split(
    ' ',
  ),
]

/** Texts that are not a plain web address. `PORT` is the port of a canary. */
const forbiddenUrls = [
  ...`http://[fe80::1%25lo]:PORT/ http://[fe80::1%lo]:PORT/ http://[::1%25lo]:PORT/ http://[::1]x:PORT/
    http://user@127.0.0.1:PORT/ http://user:pass@127.0.0.2:PORT/ http://127.0.0.2@127.0.0.1:PORT/
    http://127.0.0.2:PORT@127.0.0.1:PORT/ http://@127.0.0.1:PORT/ http://127.0.0.1:PORT#@127.0.0.2/
    http:127.0.0.1:PORT/ http:/127.0.0.1:PORT/ http:///127.0.0.1:PORT/ //127.0.0.1:PORT/ http://127.0.0.1%00.test:PORT/
    http://:PORT/ http://.:PORT/ http://256.256.256.256:PORT/ http://127.0.0.0x100:PORT/ http://1.2.3.4.5:PORT/
    ftp://127.0.0.1:PORT/ file:///etc/passwd file://127.0.0.1/etc/passwd data:text/plain,hello gopher://127.0.0.1:PORT/_x
    ws://127.0.0.1:PORT/ javascript:1 blob:http://127.0.0.1:PORT/x unix:/x http://127.0.0.2:22/ http://127.0.0.2:25/
    http://127.0.0.2:0/ http://127.0.0.2:6667/ http://`.split(/\s+/),
  'http://127.0.0.1:PORT\\@127.0.0.2/',
  'http:\\\\127.0.0.1:PORT/',
  ' http://127.0.0.1:PORT/',
  'ht\ntp://127.0.0.1:PORT/',
  'http://127.0.0.1:PORT/\u0000',
  'http://127.0.0\t.1:PORT/',
  '',
  `http://127.0.0.2:PORT/${'a'.repeat(2_048)}`,
]

/** Opens servers at addresses that must not be called. They send content, so that reaching one is not a failure. */
async function openCanaries(t: TestContext) {
  const sing = (socket: { end(text: string): unknown }) => socket.end(newAnswer('200 OK\nContent-Length: 4', 'song'))
  const first = await openOrigin(t, sing, { host: '127.0.0.1' })
  const others = ['::1', '127.0.0.254', '127.255.255.254'].map((host) =>
    openOrigin(t, sing, { host, port: first.port }),
  )
  const canaries = [first, ...(await Promise.all(others))]
  return {
    port: first.port,
    assertUntouched: () => assert.deepEqual(canaries.map(({ heard }) => heard.length).join(), '0,0,0,0'),
  }
}

describe('an address that is not public', () => {
  test('has at least 100 spellings in the table', () => {
    assert.ok(forbiddenHosts.length >= 100 && forbiddenUrls.length >= 40)
    assert.equal(new Set([...forbiddenHosts, ...forbiddenUrls]).size, forbiddenHosts.length + forbiddenUrls.length)
  })

  test('is never called when a caller gives it', async (t) => {
    const canaries = await openCanaries(t)
    const { fetch } = newFetching(t, { allowed: [] })
    const before = dialled.length
    for (const scheme of ['http', 'https']) {
      for (const host of forbiddenHosts) {
        const outcome = await fetch(`${scheme}://${host}:${canaries.port}/`)
        assertFailed(outcome, 'DownloadFailed', /not (public|lead to a public)/)
        assert.equal(dialled.length, before, `${host} was dialled`)
      }
    }
    canaries.assertUntouched()
  })

  test('is never called when a redirect leads there', async (t) => {
    const canaries = await openCanaries(t)
    // The redirects come from the origin, which is the only server that may be called.
    const targets = forbiddenHosts.map((host) => `http://${host}:${canaries.port}/`)
    const origin = await openOrigin(t, (socket, path) => {
      // Headers are bytes; wide digits are sent as UTF-8.
      socket.end(Buffer.from(newAnswer(`302 Found\nLocation: ${targets[Number(path.slice(1))]}\nContent-Length: 0`)))
    })
    const { fetch } = newFetching(t)
    for (const at of targets.keys()) {
      const before = dialled.length
      const outcome = await fetch(`http://127.0.0.2:${origin.port}/${at}`)
      assertFailed(outcome, 'DownloadFailed', /not public|valid address|not lead to a public/)
      assert.equal(dialled.length, before + 1, `${targets[at]} was dialled`)
    }
    canaries.assertUntouched()
  })

  test('is never called by the connector, without a check before', async (t) => {
    const canaries = await openCanaries(t)
    const agent = makeGuardedAgent({ policy: makeAddressPolicy([]) })
    const before = dialled.length
    for (const scheme of ['http', 'https']) {
      for (const host of forbiddenHosts) {
        const url = new URL(`${scheme}://${host}:${canaries.port}`)
        const call = agent.exchange({ url, method: 'GET', headers: {} }, new AbortController().signal, async () => {})
        await assert.rejects(
          call,
          (error) => error instanceof OutboundError && /not (public|lead to a public)/.test(error.message),
          host,
        )
      }
    }
    assert.equal(dialled.length, before)
    canaries.assertUntouched()
  })

  test('is never called when a name resolves to it, alone or beside a public address', async (t) => {
    const canaries = await openCanaries(t)
    const addresses = [
      ...forbiddenHosts.map((host) => host.replace(/^\[|\]$/g, '')),
      'fe80::1%lo',
      '2606:4700::1%lo',
      '',
    ]
    const literals = addresses.filter((address) => isIP(address) !== 0 || address === '')
    assert.ok(literals.length > 60)
    let answer: string[] = []
    const { fetch } = newFetching(t, { names: { 'name.test': () => answer } })
    const before = dialled.length
    for (const literal of literals) {
      for (answer of [[literal], ['127.0.0.2', literal], [literal, '127.0.0.2'], ['127.0.0.2', '127.0.0.2', literal]]) {
        const outcome = await fetch(`http://name.test:${canaries.port}/`)
        assertFailed(outcome, 'DownloadFailed', /does not lead to a public address/)
        assert.ok(
          !('reason' in outcome && literal !== '' && outcome.reason.includes(literal)),
          'the address is not in the reason',
        )
      }
    }
    assert.equal(dialled.length, before)
    canaries.assertUntouched()
  })
})

test('a text that is not a plain web address is never called', async (t) => {
  const canaries = await openCanaries(t)
  const { fetch } = newFetching(t)
  const before = dialled.length
  for (const url of forbiddenUrls) {
    assertFailed(await fetch(url.replaceAll('PORT', String(canaries.port))), 'DownloadFailed', /^The address must/)
    assert.equal(dialled.length, before, `${url} was dialled`)
  }
  canaries.assertUntouched()
})

test('a network that the operator opened is allowed, and not public', () => {
  const policy = makeAddressPolicy(['10.1.0.0/16', 'fd00::/8', '192.0.2.0/24'])
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', 'fd00::1', '192.0.2.1']) {
    assert.deepEqual([policy.isAllowed(address), policy.isPublic(address)], [true, false], address)
  }
  for (const address of ['8.8.8.8', '2606:4700::1111']) {
    assert.deepEqual([policy.isAllowed(address), policy.isPublic(address)], [true, true], address)
  }
  for (const address of ['10.2.0.1', '127.0.0.1', 'fe80::1%eth0', 'example.com', '']) {
    assert.deepEqual([policy.isAllowed(address), policy.isPublic(address)], [false, false], address)
  }
})
