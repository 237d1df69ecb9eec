import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, mock, test } from 'node:test'
import type { Connection } from '../../src/listeners/connection.ts'
import { type Listener, openListener } from '../../src/listeners/listener.ts'
import { waitFor } from '../support/wait-for.ts'

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
      host: '127.0.0.1',
      port: 0,
      maxConnections,
      serve,
      replies: { timeout: 'late\n', full: 'full\n' },
      onFailure: (error) => failures.push(error),
    })
    return failures
  }

  function dial() {
    const socket = connect({ port: listener?.port ?? 0, host: '127.0.0.1' })
    sockets.push(socket)
    let text = ''
    socket
      .on('error', () => {})
      .on('data', (chunk) => {
        text += chunk
      })
    return { socket, heard: () => text }
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

  test('a connection beyond the limit gets a reply and is closed', async () => {
    const got: number[] = []
    await open(
      listen((connection) => connection.expectNothing(), got),
      1,
    )
    dial()
    await waitFor(() => got.length === 1)
    const { socket, heard } = dial()
    await waitFor(() => socket.closed)
    assert.equal(heard(), 'full\n')
    assert.equal(listener?.countConnections(), 1)
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
