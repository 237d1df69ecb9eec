import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, describe, mock, test } from 'node:test'
import { type Connection, closeAfterReply } from '../../src/listeners/connection.ts'
import { type Listener, openListener } from '../../src/listeners/listener.ts'
import { silentLog } from '../support/silent-log.ts'
import { waitFor } from '../support/wait-for.ts'
import { watchSocket } from './watch-socket.ts'

describe('a listener', () => {
  let listener: Listener | undefined
  const sockets: Socket[] = []
  afterEach(async () => {
    mock.timers.reset()
    mock.restoreAll()
    for (const socket of sockets.splice(0)) socket.destroy()
    await listener?.close()
    listener = undefined
  })

  function turnClocks() {
    mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    mock.method(performance, 'now', () => Date.now())
  }

  async function open(serve: (connection: Connection) => Promise<void>, maxConnections = 10) {
    const failures: unknown[] = []
    listener = await openListener({
      address: { host: '127.0.0.1', port: 0 },
      maxConnections,
      serve,
      replies: {
        timeout: 'late\n',
        fail: ({ names: [reason] }, first) =>
          first === undefined ? `${reason}\n` : `full after ${first.toString()[0]}\n`,
      },
      onFailure: (error) => failures.push(error),
      onRejected() {},
      log: silentLog,
    })
    return failures
  }

  function dial() {
    const socket = connect({ port: listener?.port ?? 0, host: '127.0.0.1' })
    sockets.push(socket)
    return watchSocket(socket)
  }

  /** Serves a connection by reading all of it, after `expect` has set what it waits for. */
  const listen =
    (expect: (connection: Connection) => void, got: number[] = []) =>
    async (connection: Connection) => {
      expect(connection)
      got.push(0)
      for await (const chunk of connection.chunks()) got.push(chunk.length)
    }

  test('bytes of the client do not extend the deadline of a command', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const got: number[] = []
    await open(listen((connection) => connection.expectWithin(30_000), got))
    const { socket, heard } = dial()
    await waitFor(() => got.length === 1)
    mock.timers.tick(29_000)
    socket.write('x')
    await waitFor(() => got.length === 2)
    mock.timers.tick(1001)
    await waitFor(() => socket.closed)
    assert.equal(heard(), 'late\n')
  })

  test('content may take any time while it arrives without a pause of 30 s', async () => {
    turnClocks()
    const got: number[] = []
    await open(listen((connection) => connection.expectContent(), got))
    const { socket, heard } = dial()
    await waitFor(() => got.length === 1)
    for (let n = 0; n < 10; n++) {
      mock.timers.tick(20_000)
      socket.write(Buffer.alloc(60_000))
      await waitFor(() => got.reduce((sum, bytes) => sum + bytes, 0) === (n + 1) * 60_000)
    }
    assert.equal(heard(), '')
    mock.timers.tick(30_001)
    await waitFor(() => socket.closed)
    assert.equal(heard(), 'late\n')
  })

  test('content below 1 KB/s ends the connection', async () => {
    turnClocks()
    const got: number[] = []
    await open(listen((connection) => connection.expectContent(), got))
    const { socket, heard } = dial()
    await waitFor(() => got.length === 1)
    for (let n = 0; n < 4 && heard() === ''; n++) {
      mock.timers.tick(20_000)
      socket.write('x')
      await waitFor(() => got.length === n + 2 || heard() !== '')
    }
    await waitFor(() => socket.closed)
    assert.equal(heard(), 'late\n')
  })

  test('a late client that is still sending receives the reply', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    let goOn: (() => void) | undefined
    await open(async (connection) => {
      connection.expectWithin(30_000)
      for await (const _chunk of connection.chunks()) {
        await new Promise<void>((resolve) => {
          goOn = resolve
        })
      }
    })
    const { socket, heard, isReset } = dial()
    for (let n = 0; n < 200; n++) socket.write(Buffer.alloc(100_000))
    await waitFor(() => goOn !== undefined)
    mock.timers.tick(30_001)
    await waitFor(() => heard() === 'late\n')
    goOn?.()
    await waitFor(() => socket.closed)
    assert.equal(isReset(), false)
  })

  test('a connection beyond the limit gets a reply to its first bytes and is closed', async () => {
    const got: number[] = []
    await open(
      listen((connection) => connection.expectNothing(), got),
      1,
    )
    dial()
    await waitFor(() => got.length === 1)
    for (const first of ['z', 'n']) {
      const { socket, heard, isReset } = dial()
      // More bytes than the buffers of a connection hold: closing with unread ones would lose the reply.
      for (let n = 0; n < 100; n++) socket.write(Buffer.alloc(100_000, first))
      await waitFor(() => socket.closed)
      assert.equal(heard(), `full after ${first}\n`)
      assert.equal(isReset(), false)
    }
    assert.equal(listener?.countConnections(), 1)
  })

  test('bytes after the last reply are discarded for 5 s, and up to a limit', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const closed: string[] = []
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      void closeAfterReply(socket, 'enough\n', 1_000_000).then(() => closed.push('closed'))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const open = () => {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
      sockets.push(socket)
      return socket.resume()
    }
    const patient = open()
    await waitFor(() => patient.readableEnded)
    patient.write(Buffer.alloc(900_000))
    mock.timers.tick(4999)
    assert.deepEqual(closed, [])
    mock.timers.tick(2)
    await waitFor(() => closed.length === 1)
    const flood = open()
    flood.write(Buffer.alloc(5_000_000))
    await waitFor(() => closed.length === 2)
    server.close()
  })

  test('a client that is still sending receives the last reply', async () => {
    await open(async (connection) => {
      for await (const _chunk of connection.chunks()) {
        await connection.send('enough\n')
        return
      }
    })
    const { socket, heard } = dial()
    for (let n = 0; n < 50; n++) socket.write(Buffer.alloc(100_000))
    await waitFor(() => heard() === 'enough\n')
  })

  test('a connection that ends without a reply is reset, because clients take an ordinary end for clean', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const got: number[] = []
    const failures = await open(async (connection) => {
      got.push(0)
      for await (const chunk of connection.chunks()) {
        if (chunk.includes('bug')) throw new Error('a fault')
        if (chunk.includes('ask')) await connection.send('answer\n')
        if (chunk.includes('verdict')) connection.noteVerdict()
        if (chunk.includes('scan')) connection.setBusy(true)
        got.push(chunk.length)
      }
    })
    const faulty = dial()
    faulty.socket.write('bug')
    await waitFor(() => faulty.socket.closed)
    assert.equal(faulty.isReset(), true)
    assert.equal(failures.length, 1)
    const [idle, answered, busy] = [dial(), dial(), dial()]
    answered.socket.write('ask for a verdict')
    busy.socket.write('scan')
    await waitFor(() => got.length === 6 && answered.heard() !== '')
    listener?.startStopping(1000)
    await waitFor(() => idle.socket.closed && answered.socket.closed)
    assert.deepEqual([idle.isReset(), answered.isReset()], [true, false])
    mock.timers.tick(1001)
    await waitFor(() => busy.socket.closed)
    assert.equal(busy.isReset(), true)
  })

  test('a client that disconnects is not reported as a failure, an error of the service is', async () => {
    const failures = await open(async (connection) => {
      for await (const chunk of connection.chunks()) if (chunk.includes('bug')) throw new Error('a fault')
    })
    const gone = dial()
    gone.socket.write('hello')
    await waitFor(() => listener?.countConnections() === 1)
    gone.socket.resetAndDestroy()
    await waitFor(() => listener?.countConnections() === 0)
    assert.deepEqual(failures, [])
    dial().socket.write('bug')
    await waitFor(() => failures.length === 1)
  })

  test('at the deadline of a stop all connections are closed', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const got: number[] = []
    await open(listen((connection) => connection.setBusy(true), got))
    const { socket } = dial()
    await waitFor(() => got.length === 1)
    listener?.startStopping(30_000)
    mock.timers.tick(29_999)
    assert.equal(listener?.countConnections(), 1)
    mock.timers.tick(2)
    await waitFor(() => socket.closed)
    await waitFor(() => listener?.countConnections() === 0)
  })
})
