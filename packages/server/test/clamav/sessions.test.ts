import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { availableParallelism } from 'node:os'
import { describe, test as nodeTest, type TestContext } from 'node:test'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { makeSessions } from '../../src/engines/clamav/client.ts'
import { noAbort } from '../engines/yara-support.ts'
import { waitFor } from '../support/wait-for.ts'
import { answer, openFakeClamd, type Seen } from './fake-clamd.ts'

/** A scan that hangs must fail its own test, not all of them. */
const test = (name: string, body: (t: TestContext) => Promise<void>) => nodeTest(name, { timeout: 60_000 }, body)
const small = Buffer.from('some content')

describe('sessions with clamd', () => {
  test('send the protocol of clamd byte for byte', async (t) => {
    const fake = await openFakeClamd(t)
    const sessions = makeSessions({ address: fake.address, count: 1 })
    for (const data of [Buffer.from('abc'), Buffer.from([0, 0, 0, 0, 0])]) {
      assert.equal(await sessions.scan(data, noAbort), 'stream: OK')
    }
    const expected = [
      'zIDSESSION\0',
      'zINSTREAM\0',
      '\0\0\0\x03abc',
      '\0\0\0\0',
      'zINSTREAM\0',
      '\0\0\0\x05',
      '\0'.repeat(5 + 4),
    ]
    assert.deepEqual(fake.connections[0]?.raw.toString('latin1'), expected.join(''))
    sessions.close()
  })

  test('give any content as it is, and each caller the answer to its own', async (t) => {
    const fake = await openFakeClamd(t, {
      onScan: ({ data, seen, n }) => answer(seen, n, `stream: ${data.toString('hex', 0, 8)} FOUND`),
    })
    const sessions = makeSessions({ address: fake.address, count: 3 })
    const contents = Array.from({ length: 60 }, (_, i) => randomBytes(1 + i * 4000))
    const replies = await Promise.all(contents.map((data) => sessions.scan(data, noAbort)))
    for (const [i, data] of contents.entries()) {
      assert.equal(replies[i], `stream: ${data.toString('hex', 0, 8)} FOUND`)
    }
    const seen = fake.connections.flatMap(({ scans }) => scans)
    assert.deepEqual(seen.map((data) => data.length).toSorted(), contents.map((data) => data.length).toSorted())
    assert.equal(fake.connections.length, 3)
    sessions.close()
  })

  test('are used again: one after the other takes one connection', async (t) => {
    const fake = await openFakeClamd(t)
    const sessions = makeSessions({ address: fake.address, count: 5 })
    for (let i = 0; i < 10; i++) await sessions.scan(small, noAbort)
    assert.equal(fake.connections.length, 1)
    assert.equal(fake.connections[0]?.scans.length, 10)
    sessions.close()
  })

  test('join a reply that comes in pieces', async (t) => {
    const fake = await openFakeClamd(t, {
      async onScan({ seen, n }) {
        for (const piece of [`${n}`, ': str', 'eam: Vi', 'rüs'.slice(0, 2), 's FOUND', '\0']) {
          await new Promise((resolve) => seen.socket.write(piece, resolve))
          await new Promise(setImmediate)
        }
      },
    })
    const sessions = makeSessions({ address: fake.address, count: 1 })
    assert.equal(await sessions.scan(small, noAbort), 'stream: Virüs FOUND')
    assert.equal(await sessions.scan(small, noAbort), 'stream: Virüs FOUND')
    sessions.close()
  })

  /** A server that replies at the first bytes and reads no further. */
  async function openHasty(t: TestContext, reply: string) {
    const received: Buffer[] = []
    const connections: Socket[] = []
    const server = createServer((socket) => {
      socket.once('data', () => {
        socket.pause()
        socket.write(`1: ${reply}\0`)
      })
      socket.on('data', (bytes) => received.push(bytes)).on('error', () => {})
      connections.push(socket)
    })
    t.after(() => {
      for (const connection of connections) connection.destroy()
      server.close()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    return { sessions: makeSessions({ address: { host: '127.0.0.1', port }, count: 1 }), received, connections }
  }

  test('reject an OK that came before all of the content was sent', async (t) => {
    const { sessions } = await openHasty(t, 'stream: OK')
    await assert.rejects(sessions.scan(Buffer.alloc(32 * 2 ** 20), noAbort), EngineDown)
  })

  test('send nothing more of content whose reply came early, because its memory is used again', async (t) => {
    const { sessions, received, connections } = await openHasty(t, 'INSTREAM size limit exceeded. ERROR')
    const data = Buffer.alloc(32 * 1024 * 1024, 'a')
    assert.equal(await sessions.scan(data, noAbort), 'INSTREAM size limit exceeded. ERROR')
    data.fill('b')
    const [connection] = connections as [Socket]
    const closed = once(connection, 'close')
    connection.resume()
    await closed
    assert.ok(!Buffer.concat(received).includes('b'))
  })

  test('reject a reply without its end', async (t) => {
    const fake = await openFakeClamd(t, { onScan: ({ seen }) => seen.socket.end('1: stream: OK') })
    const sessions = makeSessions({ address: fake.address, count: 1 })
    await assert.rejects(sessions.scan(small, noAbort), EngineDown)
  })

  test('stop reading an endless reply', async (t) => {
    const fake = await openFakeClamd(t, { onScan: ({ seen }) => seen.socket.write('1: '.padEnd(1_000_000, 'x')) })
    const sessions = makeSessions({ address: fake.address, count: 1 })
    await assert.rejects(sessions.scan(small, noAbort), EngineDown)
    await waitFor(() => fake.connections[0]?.closed === true)
  })

  test('that were closed while idle are replaced silently', async (t) => {
    const fake = await openFakeClamd(t)
    const sessions = makeSessions({ address: fake.address, count: 1 })
    await sessions.scan(small, noAbort)
    fake.connections[0]?.socket.end()
    await waitFor(() => fake.connections[0]?.closed === true)
    assert.equal(await sessions.scan(small, noAbort), 'stream: OK')
    assert.equal(fake.connections.length, 2)
    sessions.close()
  })

  // clamd 1.4 sends the first, with a line feed, when it has waited too long for a command.
  for (const said of ['COMMAND READ TIMED OUT\n', '1: COMMAND READ TIMED OUT\0']) {
    test(`that were told ${JSON.stringify(said)} while idle, and closed, are replaced as well`, async (t) => {
      const fake = await openFakeClamd(t)
      const sessions = makeSessions({ address: fake.address, count: 1 })
      await sessions.scan(small, noAbort)
      fake.connections[0]?.socket.end(said)
      await waitFor(() => fake.connections[0]?.closed === true)
      assert.equal(await sessions.scan(small, noAbort), 'stream: OK')
      sessions.close()
    })
  }

  test('never give an unrequested reply to the next caller, nor one connection to two callers', async (t) => {
    const fake = await openFakeClamd(t, { onScan: ({ data, seen, n }) => answer(seen, n, `stream: ${data} FOUND`) })
    const sessions = makeSessions({ address: fake.address, count: 1 })
    await sessions.scan(Buffer.from('first'), noAbort)
    fake.connections[0]?.socket.write('1: stream: OK\0')
    // These bytes arrive before the replies to the next commands.
    const next = ['a', 'b', 'c'].map((name) => sessions.scan(Buffer.from(name), { signal: AbortSignal.timeout(2000) }))
    const replies = await Promise.allSettled(next)
    for (const [i, reply] of replies.entries()) {
      if (reply.status === 'fulfilled') assert.equal(reply.value, `stream: ${'abc'[i]} FOUND`)
      else assert.ok(reply.reason instanceof EngineDown, String(reply.reason))
    }
    sessions.close()
  })

  for (const [what, more] of Object.entries({
    'a second reply': '2: stream: Eicar FOUND\0',
    'the same reply again': '1: stream: OK\0',
    'the beginning of a second reply': '2: str',
  })) {
    test(`reject a reply with ${what} behind it, and close the connection`, async (t) => {
      const fake = await openFakeClamd(t, {
        onScan({ seen, n }) {
          if (seen === fake.connections[0]) seen.socket.write(`1: stream: OK\0${more}`)
          else answer(seen, n, 'stream: OK')
        },
      })
      const sessions = makeSessions({ address: fake.address, count: 1 })
      await assert.rejects(sessions.scan(small, noAbort), EngineDown)
      assert.equal(await sessions.scan(small, noAbort), 'stream: OK')
      assert.deepEqual(
        fake.connections.map(({ scans }) => scans.length),
        [1, 1],
      )
      sessions.close()
    })
  }

  test('closed during a scan fail that scan alone', async (t) => {
    const waiting: { seen: Seen; n: number; data: Buffer }[] = []
    const fake = await openFakeClamd(t, { onScan: (scan) => waiting.push(scan) })
    const sessions = makeSessions({ address: fake.address, count: 2 })
    const scans = ['a', 'b', 'c'].map((name) => sessions.scan(Buffer.from(name), noAbort))
    const completed = Promise.allSettled(scans)
    await waitFor(() => waiting.length === 2)
    const fallen = waiting.find(({ data }) => data.toString() === 'a')
    fallen?.seen.socket.destroy()
    await waitFor(() => waiting.length === 3)
    for (const scan of waiting.filter((one) => one !== fallen)) answer(scan.seen, scan.n, 'stream: OK')
    const [a, b, c] = await completed
    assert.ok(a?.status === 'rejected' && a.reason instanceof EngineDown)
    assert.deepEqual([b, c], Array(2).fill({ status: 'fulfilled', value: 'stream: OK' }))
    sessions.close()
  })

  test('reject while clamd is away, and work when it is back', async (t) => {
    const fake = await openFakeClamd(t)
    await fake.stop()
    const sessions = makeSessions({ address: fake.address, count: 2 })
    const scans = await Promise.allSettled([1, 2, 3, 4].map(() => sessions.scan(small, noAbort)))
    assert.ok(scans.every((scan) => scan.status === 'rejected' && scan.reason instanceof EngineDown))
    await fake.listen()
    assert.equal(await sessions.scan(small, noAbort), 'stream: OK')
    sessions.close()
  })

  test('let a caller leave during its scan, and continue with the next', async (t) => {
    let asked = 0
    const leaving = new AbortController()
    const fake = await openFakeClamd(t, {
      onScan({ seen, n }) {
        if (asked++ === 0) leaving.abort()
        else answer(seen, n, 'stream: OK')
      },
    })
    const sessions = makeSessions({ address: fake.address, count: 1 })
    const [left, stayed] = await Promise.allSettled([sessions.scan(small, leaving), sessions.scan(small, noAbort)])
    assert.equal(left.status, 'rejected')
    assert.equal(left.status === 'rejected' && left.reason instanceof EngineDown, false)
    assert.deepEqual(stayed, { status: 'fulfilled', value: 'stream: OK' })
    // The connection of an abandoned scan would reply to that scan, not to the next.
    assert.equal(fake.connections.length, 2)
    sessions.close()
  })

  test('let a caller leave the queue', async (t) => {
    const fake = await openFakeClamd(t, { onScan: () => {} })
    const sessions = makeSessions({ address: fake.address, count: 1 })
    const [working, waiting] = [new AbortController(), new AbortController()]
    const first = assert.rejects(sessions.scan(small, working))
    const second = sessions.scan(small, waiting).then(
      () => 'answered',
      () => 'let go',
    )
    await waitFor(() => fake.connections[0]?.scans.length === 1)
    waiting.abort()
    const ticked = new Promise<string>((resolve) => setImmediate(resolve, 'still held'))
    assert.equal(await Promise.race([second, ticked]), 'let go')
    working.abort()
    await first
  })

  test('serve few jobs at once while callers come, and all of them otherwise', async (t) => {
    const pending: (() => void)[] = []
    const fake = await openFakeClamd(t, {
      onScan: ({ seen, n }) => void pending.push(() => answer(seen, n, 'stream: OK')),
    })
    const count = 2 * availableParallelism() + 4
    const { signal } = noAbort
    const job = { accountId: 'a', order: 1, stopping: signal }
    const scanJobs = (sessions: ReturnType<typeof makeSessions>) =>
      Array.from({ length: count }, () => sessions.scan(small, { signal, job }))
    const answerAll = async (scans: Promise<string>[]) => {
      const all = Promise.all(scans)
      for (let done = 0; done < scans.length; done++) {
        await waitFor(() => pending.length > 0)
        pending.shift()?.()
      }
      await all
    }

    const idle = makeSessions({ address: fake.address, count })
    const alone = scanJobs(idle)
    await waitFor(() => pending.length === count)
    await answerAll(alone)
    idle.close()

    const busy = makeSessions({ address: fake.address, count })
    const caller = busy.scan(small, noAbort)
    const beside = scanJobs(busy)
    const second = busy.scan(small, noAbort)
    await waitFor(() => pending.length === 2 + Math.max(2, availableParallelism()))
    await answerAll([caller, second, ...beside])
    busy.close()
  })

  test('do not begin a scan that was given up before', async (t) => {
    const fake = await openFakeClamd(t)
    const sessions = makeSessions({ address: fake.address, count: 1 })
    const reason = new Error('too late')
    await assert.rejects(sessions.scan(small, { signal: AbortSignal.abort(reason) }), reason)
    assert.equal(await sessions.scan(small, noAbort), 'stream: OK')
    assert.equal(fake.connections.flatMap(({ scans }) => scans).length, 1)
    sessions.close()
  })

  test('end when closed: idle ones at once, the others after their scan', async (t) => {
    const waiting: { seen: Seen; n: number }[] = []
    const fake = await openFakeClamd(t, {
      onScan: (scan) =>
        scan.data.toString() === 'slow' ? waiting.push(scan) : answer(scan.seen, scan.n, 'stream: OK'),
    })
    const sessions = makeSessions({ address: fake.address, count: 2 })
    const slow = sessions.scan(Buffer.from('slow'), noAbort)
    await sessions.scan(small, noAbort)
    await waitFor(() => waiting.length === 1)
    const idle = fake.connections.find((seen) => seen !== waiting[0]?.seen)
    sessions.close()
    await waitFor(() => idle?.closed === true)
    const [atWork] = waiting
    assert.ok(atWork !== undefined)
    const ended = once(atWork.seen.socket, 'close')
    answer(atWork.seen, atWork.n, 'stream: OK')
    assert.equal(await slow, 'stream: OK')
    // This connection uses the old signatures: the next scan must not use it.
    assert.equal(await sessions.scan(small, noAbort), 'stream: OK')
    assert.equal(atWork.seen.scans.length, 1)
    await ended
    sessions.close()
  })
})
