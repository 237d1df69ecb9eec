import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test as nodeTest, type TestContext } from 'node:test'
import type { Content } from '../../src/domain/content/content.ts'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { makeClamdClient, sessionCount } from '../../src/engines/clamav/client.ts'
import { sendCommand, streamToClamd } from '../../src/engines/clamav/connection.ts'
import { newContent } from '../engines/unpack-archives.ts'
import { noAbort } from '../engines/yara-support.ts'
import { waitFor } from '../support/wait-for.ts'
import { answer, openFakeClamd } from './fake-clamd.ts'

/** A call that hangs must fail its own test, not all of them. */
const test = (name: string, body: (t: TestContext) => Promise<void>) => nodeTest(name, { timeout: 60_000 }, body)

/** A server on the socket that is not clamd. */
async function openStranger(t: TestContext, onConnection: (socket: Socket) => void) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-clamd-'))
  const path = join(dir, 'clamd.sock')
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
    rmSync(dir, { recursive: true, force: true })
  })
  return { path }
}

const spooled = (bytes: number) => newContent(randomBytes(bytes), { spooled: true })

describe('a connection to clamd', () => {
  test('sends the protocol of clamd byte for byte', async (t) => {
    const fake = await openFakeClamd(t)
    const clear = randomBytes(120_000)
    assert.equal(await streamToClamd(fake.address, newContent(clear, { spooled: true }), noAbort.signal), 'stream: OK')
    const length = Buffer.alloc(4)
    length.writeUInt32BE(clear.length)
    const expected = Buffer.concat([Buffer.from('zINSTREAM\0'), length, clear, Buffer.alloc(4)])
    assert.ok(fake.connections[0]?.raw.equals(expected))
  })

  test('carries more than any buffer holds, without losing a byte', async (t) => {
    const fake = await openFakeClamd(t)
    const clear = randomBytes(5_000_000)
    await streamToClamd(fake.address, newContent(clear, { spooled: true }), noAbort.signal)
    assert.ok(fake.connections[0]?.scans[0]?.equals(clear))
  })

  test('asks a command and hands its answer on', async (t) => {
    const fake = await openFakeClamd(t)
    assert.equal(await sendCommand(fake.address, 'PING', 60_000), 'PONG')
    assert.equal(fake.connections[0]?.raw.toString(), 'zPING\0')
  })

  test('joins a reply that comes in pieces', async (t) => {
    const address = await openStranger(t, async (socket) => {
      for (const piece of ['stre', 'am: O', 'K', '\0']) {
        await new Promise((resolve) => socket.write(piece, resolve))
        await new Promise(setImmediate)
      }
      socket.end()
    })
    assert.equal(await sendCommand(address, 'PING', 60_000), 'stream: OK')
  })

  for (const [what, said] of Object.entries({
    'nothing at all': '',
    'an answer without its end': 'stream: OK',
    'an answer that ends too soon': 'stream: O',
    'an answer without end': 'x'.repeat(10_000),
    'two answers': 'stream: OK\0stream: Eicar FOUND\0',
  })) {
    test(`takes ${what} for none`, async (t) => {
      const address = await openStranger(t, (socket) => {
        socket.resume()
        socket.end(said)
      })
      await assert.rejects(sendCommand(address, 'PING', 60_000), EngineDown)
      await assert.rejects(streamToClamd(address, spooled(1000), noAbort.signal), EngineDown)
    })
  }

  test('that is refused means that the engine is down', async () => {
    await assert.rejects(sendCommand({ path: '/nowhere/clamd.sock' }, 'PING', 60_000), EngineDown)
    await assert.rejects(streamToClamd({ path: '/nowhere/clamd.sock' }, spooled(100_000), noAbort.signal), EngineDown)
    await assert.rejects(streamToClamd({ host: '127.0.0.1', port: 1 }, spooled(100_000), noAbort.signal), EngineDown)
  })

  test('that breaks within the content means that the engine is down', async (t) => {
    const address = await openStranger(t, (socket) => socket.once('data', () => socket.destroy()))
    await assert.rejects(streamToClamd(address, spooled(5_000_000), noAbort.signal), EngineDown)
  })

  test('hands an answer on that came before all of the content was sent', async (t) => {
    const limit = 'INSTREAM size limit exceeded. ERROR'
    // Beyond StreamMaxLength clamd replies and reads no further.
    const address = await openStranger(t, (socket) => socket.once('data', () => socket.end(`${limit}\0`)))
    assert.equal(await streamToClamd(address, spooled(20_000_000), noAbort.signal), limit)
  })

  test('hands an early answer on also when the rest of the content is taken and thrown away', async (t) => {
    const limit = 'INSTREAM size limit exceeded. ERROR'
    const address = await openStranger(t, (socket) => {
      socket.once('data', () => socket.write(`${limit}\0`))
      socket.resume()
    })
    assert.equal(await streamToClamd(address, spooled(20_000_000), noAbort.signal), limit)
  })

  test('rejects an early OK: clamd has not scanned all of the content', async (t) => {
    const address = await openStranger(t, (socket) => socket.once('data', () => socket.end('stream: OK\0')))
    await assert.rejects(streamToClamd(address, spooled(20_000_000), noAbort.signal), EngineDown)
  })

  test('rejects an OK while the end of the content waits to be sent', async (t) => {
    const address = await openStranger(t, (socket) => {
      socket.once('readable', () => socket.write('stream: OK\0'))
    })
    // The content is one group that is sent without a pause, and more than the system holds.
    await assert.rejects(streamToClamd(address, newContent(randomBytes(500_000)), noAbort.signal), EngineDown)
  })

  test('ends when the caller gives up, before, while sending and while waiting', async (t) => {
    const silent = await openStranger(t, (socket) => socket.resume())
    const stuck = await openStranger(t, (socket) => socket.pause())
    await assert.rejects(streamToClamd(silent, spooled(1000), AbortSignal.abort()))
    for (const address of [silent, stuck]) {
      await assert.rejects(streamToClamd(address, spooled(20_000_000), AbortSignal.timeout(100)))
      await assert.rejects(sendCommand(address, 'PING', 100))
    }
  })

  test('is given up when the content cannot be read, with that failure', async (t) => {
    const fake = await openFakeClamd(t)
    const failure = new Error('the store is away')
    const content: Content = {
      ...spooled(100_000),
      async *read() {
        yield randomBytes(1000)
        throw failure
      },
    }
    await assert.rejects(streamToClamd(fake.address, content, noAbort.signal), failure)
    await waitFor(() => fake.connections[0]?.closed === true)
    assert.deepEqual(fake.connections[0]?.scans, [])
  })

  test('never reports content as scanned whole that ended early', async (t) => {
    const fake = await openFakeClamd(t)
    const content: Content = {
      ...spooled(100_000),
      async *read() {
        yield randomBytes(1000)
      },
    }
    await assert.rejects(streamToClamd(fake.address, content, noAbort.signal), EngineDown)
  })
})

describe('the client', () => {
  test('keeps connections for small content and takes one each for large', async (t) => {
    const fake = await openFakeClamd(t)
    const client = makeClamdClient({ address: fake.address })
    const limit = 256 * 1024
    for (const bytes of [1, limit, 1]) await client.scan(newContent(randomBytes(bytes)), noAbort)
    assert.equal(fake.connections.length, 1)
    await client.scan(newContent(randomBytes(limit + 1)), noAbort)
    await client.scan(spooled(10), noAbort)
    assert.equal(fake.connections.length, 3)
    client.close()
  })

  test('ends the use of clamd by large content whose owner fails at once', async (t) => {
    const fake = await openFakeClamd(t)
    const client = makeClamdClient({ address: fake.address, findPid: () => 1 })
    let uses = 0
    const onUse = () => {
      uses++
      return () => void uses--
    }
    const sendFromOwner = () => {
      throw new Error('the owner is away')
    }
    const content: Content = { ...spooled(300_000), sendFromOwner }
    await assert.rejects(async () => client.scan(content, { ...noAbort, onUse }), /the owner is away/)
    assert.equal(uses, 0)
  })

  test('holds no more connections for small content than it may', async (t) => {
    const fake = await openFakeClamd(t, {
      onScan: ({ seen, n }) => setImmediate(() => answer(seen, n, 'stream: OK')),
    })
    const client = makeClamdClient({ address: fake.address })
    await Promise.all(
      Array.from({ length: sessionCount * 4 }, () => client.scan(newContent(randomBytes(100)), noAbort)),
    )
    assert.equal(fake.findMost(), sessionCount)
    client.close()
  })

  test('gives a command up after its time', async (t) => {
    const address = await openStranger(t, (socket) => socket.resume())
    const client = makeClamdClient({ address })
    await assert.rejects(client.sendCommand('PING', 50))
  })
})
