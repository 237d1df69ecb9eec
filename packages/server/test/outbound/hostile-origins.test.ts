import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { version } from '../../src/runtime/process.ts'
import { assertFailed, getContent, newFetching, shortLimits } from './fetching.ts'
import { newAnswer, openBlackHole, openOrigin } from './origins.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

describe('a download', () => {
  test('asks plainly, for the path and query as given, and for no encoding', async (t) => {
    const origin = await openOrigin(t, (socket) => socket.end(newAnswer('200 OK\nContent-Length: 5', 'hello')))
    const { fetch } = newFetching(t)
    const content = getContent(await fetch(`http://127.0.0.2:${origin.port}/a%20b/?q=%2f&x#fragment`))
    assert.equal(content.whole?.toString(), 'hello')
    const [line, ...headers] = origin.heard[0]?.trimEnd().split('\r\n') ?? []
    assert.equal(line, 'GET /a%20b/?q=%2f&x HTTP/1.1')
    assert.deepEqual(headers.map((header) => header.toLowerCase()).sort(), [
      'accept-encoding: identity',
      'accept: */*',
      'connection: close',
      `host: 127.0.0.2:${origin.port}`,
      `user-agent: assay/${version}`,
    ])
  })

  const large = randomBytes(5_000_003)
  const forms: Record<string, (socket: Socket) => void> = {
    'with a length': (socket) => {
      socket.write(newAnswer(`200 OK\nContent-Length: ${large.length}`))
      socket.end(large)
    },
    'in chunks': (socket) => {
      socket.write(newAnswer('200 OK\nTransfer-Encoding: chunked'))
      for (let at = 0; at < large.length; at += 30_011) {
        const chunk = large.subarray(at, at + 30_011)
        socket.write(`${chunk.length.toString(16)};name=value\r\n`)
        socket.write(chunk)
        socket.write('\r\n')
      }
      socket.end('0\r\nTrailer: x\r\n\r\n')
    },
    'until the connection ends': (socket) => {
      socket.write('HTTP/1.0 203 Fine\r\n\r\n')
      socket.end(large)
    },
  }
  for (const [form, answer] of Object.entries(forms)) {
    test(`${form} arrives whole, at exactly the limit`, async (t) => {
      const origin = await openOrigin(t, answer)
      const { fetch } = newFetching(t)
      const url = `http://127.0.0.2:${origin.port}/`
      const content = getContent(await fetch(url, { maxBytes: large.length }))
      assert.equal(content.bytes, large.length)
      assert.equal(content.sha256, sha256(large))
      assertFailed(await fetch(url, { maxBytes: large.length - 1 }), 'TooLarge', /larger than 5000002 bytes/)
    })
  }
})

describe('an origin that', () => {
  const endless = (head: string, piece: string | Buffer) => (socket: Socket) => {
    socket.write(head)
    const pour = () => {
      while (socket.writable && socket.write(piece));
    }
    socket.on('drain', pour)
    pour()
  }
  const bomb = gzipSync(Buffer.alloc(50_000_000))
  const part = newAnswer('200 OK\nContent-Length: 100', 'only this')

  const cases: [name: string, answer: (socket: Socket) => void, failure: string, reason: RegExp][] = [
    ['never stops', endless(newAnswer('200 OK'), Buffer.alloc(65_536)), 'TooLarge', /larger/],
    [
      'never stops its chunks',
      endless(newAnswer('200 OK\nTransfer-Encoding: chunked'), '10\r\nsixteen letters!\r\n'.repeat(5_000)),
      ...(['TooLarge', /larger/] as const),
    ],
    [
      'announces too much',
      (socket) => socket.write(newAnswer('200 OK\nContent-Length: 1000001')),
      ...(['TooLarge', /larger/] as const),
    ],
    [
      'announces a number beyond numbers',
      (socket) => socket.write(newAnswer(`200 OK\nContent-Length: ${'9'.repeat(400)}`)),
      ...(['DownloadFailed', /announced/] as const),
    ],
    ['ends before its length', (socket) => socket.end(part), 'DownloadFailed', /announced|complete/],
    ['hangs up before its length', (socket) => resetAfter(socket, part), 'DownloadFailed', /complete/],
    ['stops within its length', (socket) => socket.write(part), 'DownloadFailed', /stopped sending/],
    [
      'ends within a chunk',
      (socket) => socket.end(newAnswer('200 OK\nTransfer-Encoding: chunked', 'ff\r\nonly this')),
      ...(['DownloadFailed', /valid HTTP|complete/] as const),
    ],
    [
      'ends without the last chunk',
      (socket) => socket.end(newAnswer('200 OK\nTransfer-Encoding: chunked', '4\r\nonly\r\n')),
      ...(['DownloadFailed', /valid HTTP|complete/] as const),
    ],
    [
      'breaks its chunks',
      (socket) => socket.end(newAnswer('200 OK\nTransfer-Encoding: chunked', 'zz\r\nonly\r\n0\r\n\r\n')),
      ...(['DownloadFailed', /valid HTTP/] as const),
    ],
    [
      'gives two lengths',
      (socket) => socket.end(newAnswer('200 OK\nContent-Length: 4\nContent-Length: 9', 'only this')),
      ...(['DownloadFailed', /announced/] as const),
    ],
    [
      'gives a length and chunks',
      (socket) => socket.end(newAnswer('200 OK\nContent-Length: 4\nTransfer-Encoding: chunked', '0\r\n\r\n')),
      ...(['DownloadFailed', /valid HTTP/] as const),
    ],
    [
      'encodes what it sends',
      (socket) => {
        socket.write(newAnswer(`200 OK\nContent-Encoding: gzip\nContent-Length: ${bomb.length}`))
        socket.end(bomb)
      },
      ...(['DownloadFailed', /encoded content/] as const),
    ],
    ...['gzip', 'gzip, chunked', 'identity'].map((encoding): (typeof cases)[number] => [
      `transfers in the encoding ${encoding}`,
      (socket) => socket.end(newAnswer(`200 OK\nTransfer-Encoding: ${encoding}`, '4\r\nonly\r\n0\r\n\r\n')),
      'DownloadFailed',
      /transfer encoding|valid HTTP/,
    ]),
    ['sends nothing', (socket) => socket.end(newAnswer('200 OK\nContent-Length: 0')), 'EmptyContent', /no content/],
    [
      'sends nothing, in chunks',
      (socket) => socket.end(newAnswer('200 OK\nTransfer-Encoding: chunked', '0\r\n\r\n')),
      'EmptyContent',
      /no content/,
    ],
    ['ends at once after its head', (socket) => socket.end(newAnswer('200 OK')), 'EmptyContent', /no content/],
    ['closes without a word', (socket) => socket.end(), 'DownloadFailed', /complete/],
    ['hangs up without a word', (socket) => socket.resetAndDestroy(), 'DownloadFailed', /complete/],
    ['never answers', () => {}, 'DownloadFailed', /did not start to respond in time/],
    [
      'begins its head and stops',
      (socket) => socket.write('HTTP/1.1 200 OK\r\nA: b\r\n'),
      'DownloadFailed',
      /respond in time/,
    ],
    ['closes within its head', (socket) => socket.end('HTTP/1.1 200 OK\r\nA: b\r\n'), 'DownloadFailed', /./],
    ['sends garbage', (socket) => socket.end(Buffer.alloc(1_000, 0xfe)), 'DownloadFailed', /valid HTTP/],
    ['speaks another protocol', (socket) => socket.end('SSH-2.0-OpenSSH_9.2p1\r\n'), 'DownloadFailed', /valid HTTP/],
    ['speaks HTTP/0.9', (socket) => socket.end('<html>hello</html>\n'), 'DownloadFailed', /valid HTTP/],
    ['sends endless headers', endless('HTTP/1.1 200 OK\r\n', 'A: b\r\n'.repeat(5_000)), 'DownloadFailed', /too large/],
    ['sends an endless header', endless('HTTP/1.1 200 OK\r\nA: ', 'b'.repeat(65_536)), 'DownloadFailed', /too large/],
    ['sends an endless status line', endless('HTTP/1.1 200 ', 'b'.repeat(65_536)), 'DownloadFailed', /too large/],
    [
      'sends endless trailers',
      endless(newAnswer('200 OK\nTransfer-Encoding: chunked', '1\r\nx\r\n0\r\n'), 'A: b\r\n'.repeat(5_000)),
      ...(['DownloadFailed', /too large/] as const),
    ],
    [
      'sends an endless chunk extension',
      endless(newAnswer('200 OK\nTransfer-Encoding: chunked', '1;'), 'a'.repeat(65_536)),
      ...(['DownloadFailed', /valid HTTP/] as const),
    ],
    [
      'hints forever',
      endless('', newAnswer('103 Early Hints\nLink: <a>').repeat(30)),
      'DownloadFailed',
      /only interim responses/,
    ],
    ['only says to go on', (socket) => socket.end(newAnswer('100 Continue')), 'DownloadFailed', /complete/],
    [
      'switches protocols',
      (socket) => socket.write(newAnswer('101 Switching\nUpgrade: x\nConnection: upgrade')),
      'DownloadFailed',
      /valid HTTP/,
    ],
  ]
  for (const [name, answer, failure, reason] of cases) {
    test(`${name} ends in ${failure}, and nothing stays open`, async (t) => {
      const origin = await openOrigin(t, answer)
      const { fetch } = newFetching(t, { limits: /time|stopped/.test(reason.source) ? shortLimits : {} })
      assertFailed(await fetch(`http://127.0.0.2:${origin.port}/`), failure, reason)
      await waitUntil('the origin sees the end', () => origin.countOpen() === 0)
    })
  }

  for (const status of [204, 205, 206, 300, 304, 305, 400, 401, 403, 404, 410, 418, 429, 500, 502, 503, 599]) {
    test(`answers ${status} ends in DownloadFailed`, async (t) => {
      const origin = await openOrigin(t, (socket) =>
        socket.end(newAnswer(`${status} X${[204, 304].includes(status) ? '' : '\nContent-Length: 5'}`, 'hello')),
      )
      const { fetch } = newFetching(t)
      const outcome = await fetch(`http://127.0.0.2:${origin.port}/`)
      assertFailed(outcome, 'DownloadFailed', new RegExp(`status ${status}`))
    })
  }

  test('says to go on, unasked, gives what follows', async (t) => {
    const answer =
      newAnswer('100 Continue') + newAnswer('103 Early Hints') + newAnswer('200 OK\nContent-Length: 5', 'hello')
    const origin = await openOrigin(t, (socket) => socket.end(answer))
    const { fetch } = newFetching(t)
    assert.equal(getContent(await fetch(`http://127.0.0.2:${origin.port}/`)).whole?.toString(), 'hello')
  })

  test('sends more than its length gives the length', async (t) => {
    const answer = newAnswer('200 OK\nContent-Length: 5', 'hello, and more that nobody announced')
    const origin = await openOrigin(t, (socket) => socket.end(answer))
    const { fetch } = newFetching(t)
    const content = getContent(await fetch(`http://127.0.0.2:${origin.port}/`))
    assert.equal(content.whole?.toString(), 'hello')
  })

  test('trickles is cut when the time for the whole is over', async (t) => {
    const origin = await openOrigin(t, (socket) => {
      socket.write(newAnswer('200 OK'))
      const timer = setInterval(() => socket.write('x'), 20)
      socket.on('close', () => clearInterval(timer))
    })
    const { fetch } = newFetching(t)
    const outcome = await fetch(`http://127.0.0.2:${origin.port}/`, { totalMs: 500 })
    assertFailed(outcome, 'DownloadFailed', /not complete within 0.5 seconds/)
    await waitUntil('the origin sees the end', () => origin.countOpen() === 0)
  })

  test('pauses for less than the limit, again and again, is waited for', async (t) => {
    const origin = await openOrigin(t, async (socket) => {
      await sleep(150)
      socket.write(newAnswer('200 OK\nContent-Length: 4'))
      for (const letter of 'slow') {
        await sleep(200)
        socket.write(letter)
      }
    })
    const { fetch } = newFetching(t, { limits: { firstByteMs: 700, idleMs: 700 } })
    const content = getContent(await fetch(`http://127.0.0.2:${origin.port}/`))
    assert.equal(content.whole?.toString(), 'slow')
  })

  test('is not there ends in DownloadFailed', async (t) => {
    const { fetch } = newFetching(t)
    assertFailed(await fetch('http://127.0.0.2:3/'), 'DownloadFailed', /refused the connection/)
  })

  test('accepts no connection, nor refuses it, ends in DownloadFailed when the time to connect is over', async (t) => {
    const { fetch } = newFetching(t, { limits: shortLimits })
    const hole = await openBlackHole(t)
    const scanner = await Promise.all(Array.from({ length: 8 }, () => fetch(`http://127.0.0.2:${hole}/`)))
    const connecting = scanner.filter((outcome) => 'reason' in outcome && /complete a connection/.test(outcome.reason))
    assert.ok(connecting.length >= 1, 'the queue of the listener was never full')
    for (const outcome of scanner) assertFailed(outcome, 'DownloadFailed', /in time/)
  })
})

function resetAfter(socket: Socket, text: string) {
  socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 20))
}
