import { createServer, type Socket } from 'node:net'
import { type Connection, closeAfterReply, makeConnection, readFirstBytes, resetConnection } from './connection.ts'

/** Connections beyond the limit that may wait for their reply at the same time. Further ones are reset. */
const maxRejected = 64

type Deps = {
  host: string
  port: number
  maxConnections: number
  /** The last bytes that are sent to a client that is too slow, and to a connection beyond the limit. */
  replies: { timeout: string; full(firstBytes: Buffer): string }
  /** Serves one connection until it resolves. An error resets the connection. */
  serve(connection: Connection): Promise<void>
  onFailure(error: unknown): void
}

/**
 * Opens a TCP port, serves its connections, and closes them when the service stops. A connection that ends without a
 * reply is reset, because some clients take an ordinary end without a reply for a clean verdict.
 */
export async function openListener(deps: Deps) {
  const rejected = new Set<Socket>()
  const connections = new Map<Socket, { isBusy(): boolean; hasReplied(): boolean; whenEnded: Promise<void> }>()
  let stopping = false
  let cutTimer: NodeJS.Timeout | undefined

  // Half-open connections are allowed: a client may close its half and still wait for the reply.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    // The code that reads from a socket sees its errors; without any listener they would end the process.
    socket.on('error', () => {})
    if (connections.size >= deps.maxConnections || stopping) {
      void rejectConnection(socket)
      return
    }
    const { connection, isBusy, hasReplied, stopTimer } = makeConnection(socket, {
      isStopping: () => stopping,
      timeoutReply: deps.replies.timeout,
    })
    const whenEnded = run(socket, connection).finally(() => {
      stopTimer()
      connections.delete(socket)
    })
    connections.set(socket, { isBusy, hasReplied, whenEnded })
  })

  async function run(socket: Socket, connection: Connection) {
    try {
      await deps.serve(connection)
      connection.expectNothing()
      await closeAfterReply(socket)
    } catch (error) {
      // An error on a destroyed socket means that the client left, which is not a failure of the service.
      if (!socket.destroyed) deps.onFailure(error)
      resetConnection(socket)
    }
  }

  async function rejectConnection(socket: Socket) {
    if (rejected.size >= maxRejected) {
      socket.resetAndDestroy()
      return
    }
    rejected.add(socket)
    const firstBytes = await readFirstBytes(socket)
    await closeAfterReply(socket, deps.replies.full(firstBytes))
    rejected.delete(socket)
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
    for (const [socket, { isBusy, hasReplied }] of connections) {
      if (isBusy()) continue
      // The first request of a client may be on its way; idle clients with a reply expect an ordinary end.
      if (hasReplied()) socket.destroySoon()
      else resetConnection(socket)
    }
    cutTimer = setTimeout(() => {
      for (const socket of [...connections.keys(), ...rejected]) resetConnection(socket)
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
      for (const socket of rejected) resetConnection(socket)
    },
  }
}

export type Listener = Awaited<ReturnType<typeof openListener>>
