import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, test } from 'node:test'
import { makeTurns } from '../../src/http/turns.ts'
import { waitFor } from '../support/wait-for.ts'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

async function open(handler: RequestListener, onParsed = () => {}): Promise<number> {
  const turns = makeTurns()
  const server = createServer(turns.limitRequests(handler)).on('request', onParsed)
  turns.watchConnections(server)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  closers.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/** Sends bytes and returns the bodies of `count` responses, each of which is one line. */
function ask(port: number, bytes: string, count: number, { readsLater = false } = {}): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(bytes)
      if (readsLater) {
        socket.pause()
        setTimeout(() => socket.resume(), 50)
      }
    })
    closers.push(() => socket.destroy())
    const bodies: string[] = []
    let rest = ''
    socket.setEncoding('latin1').on('data', (part) => {
      const lines = `${rest}${part}`.split('\n')
      rest = lines.pop() ?? ''
      bodies.push(...lines.filter((line) => line.startsWith('body ')))
      if (bodies.length >= count) resolve(bodies)
    })
    socket.on('error', reject).on('close', () => reject(new Error(`closed after ${bodies.length} responses`)))
  })
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const range = (count: number) => Array.from({ length: count }, (_, i) => i)

describe('a connection that pipelines', () => {
  test('has four requests in progress at most, and all are answered in order', async () => {
    let [running, most] = [0, 0]
    const port = await open((request, response) => {
      most = Math.max(most, ++running)
      setImmediate(() => {
        running--
        response.end(`body ${request.url}\n`)
      })
    })
    const paths = range(2000).map((i) => `/${i}`)
    const bodies = await ask(port, paths.map(get).join(''), paths.length)
    assert.deepEqual(
      bodies,
      paths.map((path) => `body ${path}`),
    )
    assert.equal(most, 4)
  })

  test('begins few requests in a turn of the event loop', async () => {
    let [begun, most] = [0, 0]
    const port = await open((_, response) => {
      begun++
      response.end('body \n')
    })
    const watch = () => {
      most = Math.max(most, begun)
      begun = 0
      next = setImmediate(watch)
    }
    let next = setImmediate(watch)
    await ask(port, get('/').repeat(2000), 2000)
    clearImmediate(next)
    assert.ok(most <= 8, `${most} requests began in one turn`)
  })

  test('is answered although it reads its responses late', async () => {
    const filler = 'x'.repeat(20_000)
    const port = await open((_, response) => void response.end(`body ${filler}\n`))
    const bodies = await ask(port, get('/').repeat(500), 500, { readsLater: true })
    assert.equal(bodies.length, 500)
  })

  test('has no request that waits in the middle of its head, and few that wait', async () => {
    let [isHeld, parsed, answered] = [true, 0, 0]
    const held: (() => void)[] = []
    const port = await open(
      (request, response) => {
        const answer = () => void response.end(`body ${request.url}\n`, () => answered++)
        if (isHeld) held.push(answer)
        else answer()
      },
      () => void parsed++,
    )
    const socket = connect(port, '127.0.0.1')
    closers.push(() => socket.destroy())
    const paths = range(60).map((i) => `/${i}`)
    const bytes = paths.map(get).join('')
    const answers = text(socket)
    const isParsed = (count: number) => waitFor(() => parsed === count)
    const send = (from: number, to: number) => new Promise((resolve) => socket.write(bytes.slice(from, to), resolve))

    const ends = paths.map(
      (_, i) =>
        paths
          .slice(0, i + 1)
          .map(get)
          .join('').length,
    )
    const [end20 = 0, end22 = 0, ...laterEnds] = [ends[19], ...ends.slice(21)]
    await send(0, end20 + 5)
    await isParsed(20)
    await send(end20 + 5, end22 + 5)
    await isParsed(21)
    let sent = end22 + 5
    for (const end of laterEnds) {
      await send(sent, end - 1)
      await new Promise(setImmediate)
      sent = end - 1
    }
    assert.equal(parsed, 21)
    isHeld = false
    for (const answer of held) answer()
    await send(sent, bytes.length)
    await waitFor(() => answered === 60)
    socket.end()
    assert.deepEqual(
      (await answers).split('\n').filter((line) => line.startsWith('body ')),
      paths.map((path) => `body ${path}`),
    )
  })

  test('can send a body behind other requests', async () => {
    let release = () => {}
    const port = await open(async (request, response) => {
      if (request.method === 'GET') {
        const before = release
        release = () => {
          before()
          response.end('body get\n')
        }
        return
      }
      const { length } = await text(request)
      release()
      response.end(`body ${length}\n`)
    })
    const body = 'y'.repeat(300_000)
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const bodies = await ask(port, get('/').repeat(3) + post + post, 5)
    assert.deepEqual(bodies, ['body get', 'body get', 'body get', 'body 300000', 'body 300000'])
  })
})

describe('a body in chunks of one byte', () => {
  test('arrives whole, and a request behind it is answered', async () => {
    const port = await open(async (request, response) => void response.end(`body ${await text(request)}\n`))
    const content = range(20_000)
      .map((i) => (i % 36).toString(36))
      .join('')
    const chunks = [...content].map((byte) => `1\r\n${byte}\r\n`).join('')
    const post = `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`
    const bodies = await ask(port, post + get('/'), 2)
    assert.deepEqual(bodies, [`body ${content}`, 'body '])
  })

  test('yields between its pieces', async () => {
    let [chunks, most, turnsWithChunks] = [0, 0, 0]
    const port = await open((request, response) => {
      request.on('data', () => {
        chunks++
      })
      request.on('end', () => response.end('body \n'))
    })
    const watch = () => {
      // Node itself parses the first read: only its head tells that the body comes in chunks.
      if (chunks > 0 && turnsWithChunks++ > 0) most = Math.max(most, chunks)
      chunks = 0
      if (isWatching) setImmediate(watch)
    }
    let isWatching = true
    const post = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
    setImmediate(watch)
    await ask(port, `${post}${'1\r\nx\r\n'.repeat(40_000)}0\r\n\r\n`, 1)
    isWatching = false
    assert.ok(most < 3000, `${most} chunks came in one turn`)
  })
})
