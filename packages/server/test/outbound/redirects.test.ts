import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertFailed, getContent, newFetching } from './fetching.ts'
import { newAnswer, openOrigin } from './origins.ts'

const redirect = (status: number, location: string) =>
  newAnswer(`${status} Moved\nLocation: ${location}\nSet-Cookie: a=b\nContent-Length: 4`, 'gone')
const content = newAnswer('200 OK\nContent-Length: 5', 'hello')

describe('a redirect', () => {
  for (const status of [301, 302, 303, 307, 308]) {
    test(`with ${status} is followed, with nothing carried along`, async (t) => {
      const origin = await openOrigin(t, (socket, path) =>
        socket.end(path === '/a' ? redirect(status, '/b?c') : content),
      )
      const { fetch } = newFetching(t)
      assert.equal(getContent(await fetch(`http://127.0.0.2:${origin.port}/a`)).whole?.toString(), 'hello')
      assert.match(origin.heard[1] ?? '', /^GET \/b\?c HTTP/)
      assert.doesNotMatch(origin.heard[1] ?? '', /cookie|authorization|referer/i)
    })
  }

  const relative: [location: string, path: string][] = [
    ['next', '/dir/next'],
    ['../up', '/up'],
    ['?q', '/dir/start?q'],
    ['/with blank', '/with%20blank'],
    ['/%2e%2e/kept%2f', '/kept%2f'],
    ['HTTP://127.0.0.2:PORT/absolute#fragment', '/absolute'],
    ['//127.0.0.2:PORT/same-scheme', '/same-scheme'],
  ]
  for (const [location, path] of relative) {
    test(`to ${location} is understood from where it came`, async (t) => {
      const origin = await openOrigin(t, (socket, asked) =>
        socket.end(asked === '/dir/start' ? redirect(302, location.replace('PORT', String(origin.port))) : content),
      )
      const { fetch } = newFetching(t)
      getContent(await fetch(`http://127.0.0.2:${origin.port}/dir/start`))
      assert.equal(origin.heard[1]?.split(' ')[1], path)
    })
  }

  test('may follow a redirect five times, and no more', async (t) => {
    const origin = await openOrigin(t, (socket, path) => {
      const left = Number(path.slice(1))
      socket.end(left === 0 ? content : redirect(302, `/${left - 1}`))
    })
    const { fetch } = newFetching(t)
    getContent(await fetch(`http://127.0.0.2:${origin.port}/5`))
    assert.equal(origin.heard.length, 6)
    assertFailed(await fetch(`http://127.0.0.2:${origin.port}/6`), 'DownloadFailed', /more than 5 times/)
    assert.equal(origin.heard.length, 12, 'the seventh request is never made')
  })

  test('in a circle ends', async (t) => {
    const origin = await openOrigin(t, (socket) => socket.end(redirect(301, '/')))
    const { fetch } = newFetching(t)
    assertFailed(await fetch(`http://127.0.0.2:${origin.port}/`), 'DownloadFailed', /more than 5 times/)
    assert.equal(origin.heard.length, 6)
  })

  const refused: [location: string, reason: RegExp][] = [
    ['file:///etc/passwd', /absolute http or https/],
    ['ftp://127.0.0.2/x', /absolute http or https/],
    ['data:text/plain,hello', /absolute http or https/],
    ['javascript:1', /absolute http or https/],
    ['gopher://127.0.0.2/x', /absolute http or https/],
    ['http://user:secret@127.0.0.2/', /user name or password/],
    ['http://127.0.0.1/', /not (public|lead to a public)/],
    ['http:127.0.0.1/', /not public|status|redirects/],
    ['/\\127.0.0.1/', /not (public|lead to a public)/],
    ['//127.0.0.1/', /not (public|lead to a public)/],
    ['http://[::1]/', /not (public|lead to a public)/],
    ['http://2130706433/', /not (public|lead to a public)/],
    ['http://127.0.0.2:25/', /port 25/],
    ['http://', /without a valid address/],
    ['http://[', /without a valid address/],
    [`/${'a'.repeat(2_048)}`, /longer than/],
    ['http://127.0.0.2/\nLocation: http://127.0.0.1/', /without a valid address/],
  ]
  for (const [location, reason] of refused) {
    test(`to ${JSON.stringify(location.slice(0, 60))} is not followed`, async (t) => {
      const origin = await openOrigin(t, (socket) => socket.end(redirect(302, location)))
      const { fetch } = newFetching(t)
      assertFailed(await fetch(`http://127.0.0.2:${origin.port}/`), 'DownloadFailed', reason)
    })
  }

  test('without an address ends', async (t) => {
    const origin = await openOrigin(t, (socket) => socket.end(newAnswer('302 Found\nContent-Length: 0')))
    const { fetch } = newFetching(t)
    assertFailed(await fetch(`http://127.0.0.2:${origin.port}/`), 'DownloadFailed', /without a valid address/)
  })

  test('has an endless body, of which nothing is waited for', async (t) => {
    const origin = await openOrigin(t, (socket, path) => {
      if (path !== '/') return void socket.end(content)
      socket.write(newAnswer('302 Found\nLocation: /b\nTransfer-Encoding: chunked'))
      const timer = setInterval(() => socket.write('1\r\nx\r\n'), 5)
      socket.on('close', () => clearInterval(timer))
    })
    const { fetch } = newFetching(t)
    getContent(await fetch(`http://127.0.0.2:${origin.port}/`))
  })

  test('shares the time of the whole', async (t) => {
    const origin = await openOrigin(t, (socket) => setTimeout(() => socket.end(redirect(302, '/')), 150))
    const { fetch } = newFetching(t)
    const outcome = await fetch(`http://127.0.0.2:${origin.port}/`, { totalMs: 400 })
    assertFailed(outcome, 'DownloadFailed', /not complete within 0.4 seconds/)
    assert.ok(origin.heard.length <= 3)
  })
})

describe('the hosts that an account may use', () => {
  test('are asked about at every step, in one spelling', async (t) => {
    const origin = await openOrigin(t, (socket, path) =>
      socket.end(path === '/' ? redirect(302, `http://B.test.:${origin.port}/x`) : content),
    )
    const names = { 'a.test': () => ['127.0.0.2'], 'b.test': () => ['127.0.0.2'] }
    const { fetch } = newFetching(t, { names })
    const asked: string[] = []
    const isHostAllowed = (allowed: string[]) => (host: string) => asked.push(host) > 0 && allowed.includes(host)
    const url = `http://A.test:${origin.port}/`
    getContent(await fetch(url, { isHostAllowed: isHostAllowed(['a.test', 'b.test']) }))
    assert.deepEqual(asked, ['a.test', 'b.test'])
    const outcome = await fetch(url, { isHostAllowed: isHostAllowed(['a.test']) })
    assertFailed(outcome, 'DownloadFailed', /redirect names a host that this account may not use/)
    const heard = origin.heard.length
    assertFailed(await fetch(url, { isHostAllowed: () => false }), 'DownloadFailed', /address names a host that this/)
    assert.equal(origin.heard.length, heard, 'nobody is called')
  })
})
