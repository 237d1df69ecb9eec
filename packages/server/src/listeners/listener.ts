import { createServer, type Socket } from 'node:net'
import { type Connection, makeConnection } from './connection.ts'

const lingerMs = 5000

type Deps = {
  host: string
  port: number
  maxConnections: number
  /** The last bytes that are sent to a client that is too slow, and to a connection beyond the limit. */
  replies: { timeout: string; full: string }
  /** Serves one connection until it resolves. An error closes the connection. */
  serve(connection: Connection): Promise<void>
  onFailure(error: unknown): void
}

/** Opens a TCP port, serves its connections, and closes them when the service stops. */
export async function openListener(deps: Deps) {
  const connections = new Map<Socket, { isBusy(): boolean; whenEnded: Promise<void> }>()
  let stopping = false
  let cutTimer: NodeJS.Timeout | undefined

  // Half-open connections are allowed: a client may close its half and still wait for the reply.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    // The code that reads from a socket sees its errors; without any listener they would end the process.
    socket.on('error', () => {})
    if (connections.size >= deps.maxConnections || stopping) {
      socket.end(deps.replies.full)
      socket.destroySoon()
      return
    }
    const { connection, isBusy, stopTimer } = makeConnection(socket, {
      isStopping: () => stopping,
      timeoutReply: deps.replies.timeout,
    })
    const whenEnded = run(socket, connection).finally(() => {
      stopTimer()
      connections.delete(socket)
    })
    connections.set(socket, { isBusy, whenEnded })
  })

  async function run(socket: Socket, connection: Connection) {
    try {
      await deps.serve(connection)
      connection.expectNothing()
      await closeGracefully(socket)
    } catch (error) {
      // An error on a destroyed socket means that the client left, which is not a failure of the service.
      if (!socket.destroyed) deps.onFailure(error)
      socket.destroy()
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(deps.port, deps.host, resolve)
  })
  const address = server.address()

  function startStopping(cutAfterMs: number) {
    if (stopping) return
    stopping = true
    server.close()
    for (const [socket, { isBusy }] of connections) if (!isBusy()) socket.destroySoon()
    cutTimer = setTimeout(() => {
      for (const socket of connections.keys()) socket.destroy()
    }, cutAfterMs)
  }

  return {
    port: typeof address === 'object' && address !== null ? address.port : deps.port,
    countConnections: () => connections.size,
    /** Accepts no new connection and closes idle ones. Busy ones may finish within `cutAfterMs`. */
    startStopping,
    async close() {
      startStopping(0)
      await Promise.all([...connections.values()].map(({ whenEnded }) => whenEnded))
      clearTimeout(cutTimer)
    },
  }
}

export type Listener = Awaited<ReturnType<typeof openListener>>

/**
 * Closes a connection after its last reply, reading on for up to 5 s. Closing at once would reset the connection, and a
 * client that is still sending would lose the reply.
 */
async function closeGracefully(socket: Socket) {
  if (socket.destroyed) return
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.end()
  socket.resume()
  await closed
  clearTimeout(timer)
}
