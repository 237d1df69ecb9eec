import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test as nodeTest, type TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { makeSessions } from '../../src/engines/clamav/client.ts'
import { streamToClamd } from '../../src/engines/clamav/connection.ts'
import { newContent } from '../engines/unpack-archives.ts'
import { noAbort } from '../engines/yara-support.ts'
import { newCertificate, openServer } from '../external/servers.ts'

/** A scan that hangs must fail its own test, not all of them. */
const test = (name: string, body: (t: TestContext) => Promise<void>) => nodeTest(name, { timeout: 60_000 }, body)

const name = 'clamd.example.com'

/** Opens a clamd that makes these writes for the first, the second and further contents of a connection. */
async function openTlsClamd(t: TestContext, ...replies: string[][]) {
  const { key, cert } = newCertificate(t, name)
  const worker = new Worker(new URL('tls-clamd.ts', import.meta.url), { workerData: { key, cert, replies } })
  t.after(() => worker.terminate())
  const [{ port }] = (await once(worker, 'message')) as [{ port: number }]
  return { host: '127.0.0.1', port, tls: { ca: cert, servername: name } }
}

/** Blocks this thread, so that the reply is there before Node can report that the content was sent. */
const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const scanInTimer = <T>(scan: () => Promise<T>) =>
  new Promise<T>((resolve) =>
    setTimeout(() => {
      resolve(scan())
      block(30)
    }, 1),
  )

test('an OK over TLS is accepted on a kept connection before sending is reported', async (t) => {
  const sizes = [10, 1000, 100_000, 1000]
  const address = await openTlsClamd(t, ...sizes.map((_, i) => [`${i + 1}: stream: OK\0`]))
  const sessions = makeSessions({ address, count: 1 })
  t.after(sessions.close)
  for (const bytes of sizes) {
    const reply = await scanInTimer(() => sessions.scan(Buffer.alloc(bytes, 'a'), noAbort))
    assert.equal(reply, 'stream: OK')
  }
})

test('an OK over TLS is accepted on a connection of its own before sending is reported', async (t) => {
  const address = await openTlsClamd(t, ['stream: OK\0'])
  // In one piece, so that nothing but the length 0 at the end waits until the piece is reported.
  const data = Buffer.alloc(600_000, 'a')
  const content = {
    ...newContent(data),
    read: async function* () {
      yield data
    },
  }
  let isDone = false
  const blockEachTurn = () => {
    block(5)
    if (!isDone) setImmediate(blockEachTurn)
  }
  blockEachTurn()
  try {
    for (let i = 0; i < 20; i++) {
      assert.equal(await streamToClamd(address, content, noAbort.signal), 'stream: OK')
    }
  } finally {
    isDone = true
  }
})

test('an OK over TLS with another reply behind it is rejected', async (t) => {
  const address = await openTlsClamd(t, ['1: stream: OK\0'], ['2: stream: OK\0', '2: stream: Eicar FOUND\0'])
  const sessions = makeSessions({ address, count: 1 })
  t.after(sessions.close)
  await sessions.scan(Buffer.alloc(10), noAbort)
  await assert.rejects(
    scanInTimer(() => sessions.scan(Buffer.alloc(10), noAbort)),
    EngineDown,
  )
})

test('an OK over TLS that came before all of the content was sent is rejected', async (t) => {
  const { key, cert } = newCertificate(t, name)
  for (const reply of ['1: stream: OK\0', 'stream: OK\0']) {
    const { port } = await openServer(
      t,
      (socket) =>
        socket.once('data', () => {
          socket.pause()
          socket.write(reply)
        }),
      { key, cert },
    )
    const address = { host: '127.0.0.1', port, tls: { ca: cert, servername: name } }
    const content = newContent(Buffer.alloc(32 * 2 ** 20))
    const scan = () =>
      reply.startsWith('1')
        ? makeSessions({ address, count: 1 }).scan(Buffer.alloc(32 * 2 ** 20), noAbort)
        : streamToClamd(address, content, noAbort.signal)
    await assert.rejects(scan, /before it had all of the content/)
  }
})
