import { createServer, type Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import type { Logger } from '../runtime/logger.ts'
import { watchCertificate } from '../runtime/watch-certificate.ts'
import {
  type AbortConnection,
  type Connection,
  closeAfterReply,
  IncompleteRequest,
  type LastReplies,
  makeConnection,
  readFirstBytes,
  replyAndDestroy,
  resetConnection,
} from './connection.ts'
import { makeHandshakes } from './handshakes.ts'
import { type ListenAddress, listenOn } from './listen-address.ts'
import { abortedFailure, fullFailure, incompleteFailure } from './listener-verdict.ts'

/** Connections beyond the limit that may wait for their reply at the same time. Further ones are reset. */
const maxRejected = 64

/** TLS of a listener. The files are read again when they change. */
export type ListenerTls = {
  files: readonly string[]
  read(): SecureContextOptions
  /** Whether clients need a certificate of an authority in the context. */
  requiresCertificate: boolean
  clients: readonly string[] | undefined
  /** Time for a handshake, before which nothing is known about the client. */
  handshakeMs: number
}

type Deps = {
  address: ListenAddress
  tls?: ListenerTls | undefined
  /** Whether clients with this address are served; undefined for all. */
  allows?: ((address: string) => boolean) | undefined
  maxConnections: number
  replies: LastReplies
  /** Serves one connection until it resolves. An error resets the connection. */
  serve(connection: Connection): Promise<void>
  onFailure(error: unknown): void
  /** Called for a connection that is not served. */
  onRejected(address: string, reason: string): void
  log: Logger
}

/**
 * Opens a TCP port or a unix socket, serves its connections, and closes them when the service stops. A connection that
 * ends without a reply is reset, because some clients take an ordinary end without a reply for a clean verdict. A unix
 * socket cannot be reset: its client gets the reply for a failure instead.
 */
export async function openListener(deps: Deps) {
  const { address, replies } = deps
  const isUnix = 'path' in address
  const rejections = makeRejections(deps)
  const connections = new Map<Socket, Served>()
  let rejectedCount = 0
  let stopping = false
  let cutTimer: NodeJS.Timeout | undefined

  const handshakes = deps.tls && makeHandshakes({ ...deps.tls, context: deps.tls.read(), onSecure: start, onRefused })
  const stopWatching = handshakes && watchTls(handshakes, deps)

  // Half-open connections are allowed: a client may close its half and still wait for the reply.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (raw) => {
    // The code that reads from a socket sees its errors; without any listener they would end the process.
    raw.on('error', () => {})
    if (deps.allows?.(raw.remoteAddress ?? '') === false) onRefused(raw, 'its address is in none of the networks')
    else if (handshakes === undefined) start(raw, raw)
    else if (stopping) raw.resetAndDestroy()
    else handshakes.begin(raw)
  })

  function onRefused(raw: Socket, reason: string) {
    rejectedCount++
    deps.onRejected(raw.remoteAddress ?? '', reason)
    raw.resetAndDestroy()
  }

  /** Serves a connection. `raw` is the connection below TLS, otherwise the same socket. */
  function start(socket: Socket, raw: Socket) {
    const abort: AbortConnection = (reply) => (isUnix ? replyAndDestroy(socket, reply) : resetConnection(socket, raw))
    if (connections.size >= deps.maxConnections || stopping) {
      rejectedCount++
      if (!stopping) deps.onRejected(raw.remoteAddress ?? '', 'too many connections are open')
      void rejections.add(socket, abort)
      return
    }
    const made = makeConnection(socket, { address: raw.remoteAddress ?? '', isStopping: () => stopping, replies })
    const whenEnded = serve(deps, { socket, made, abort }).finally(() => {
      made.stopTimer()
      connections.delete(socket)
    })
    const abortWithReply = () => abort(made.toFailureReply(abortedFailure))
    connections.set(socket, { isBusy: made.isBusy, hasReplied: made.hasReplied, whenEnded, abort: abortWithReply })
  }

  const release = await listenOn(server, address).catch((error) => {
    stopWatching?.()
    throw error
  })
  const bound = server.address()

  function startStopping(cutAfterMs: number) {
    if (stopping) return
    stopping = true
    server.close()
    release()
    stopWatching?.()
    for (const raw of handshakes?.listPending() ?? []) raw.resetAndDestroy()
    for (const [socket, { isBusy, hasReplied, abort }] of connections) {
      if (isBusy()) continue
      // The first request of a client may be on its way; idle clients with a reply expect an ordinary end.
      if (hasReplied()) socket.destroySoon()
      else abort()
    }
    cutTimer = setTimeout(() => {
      for (const { abort } of connections.values()) abort()
      rejections.abortAll()
    }, cutAfterMs)
  }

  return {
    /** The port, which the system may have chosen; 0 for a unix socket. */
    port: typeof bound === 'object' && bound !== null ? bound.port : 0,
    countConnections: () => connections.size,
    /** Connections that were not served since the start. */
    countRejected: () => rejectedCount,
    /** Accepts no new connection and closes idle ones. Busy ones may finish within `cutAfterMs`. */
    startStopping,
    async close() {
      startStopping(0)
      await Promise.all([...connections.values()].map(({ whenEnded }) => whenEnded))
      clearTimeout(cutTimer)
      rejections.abortAll()
    },
  }
}

/** Serves one connection until its end. */
async function serve(
  deps: Deps,
  { socket, made, abort }: { socket: Socket; made: ReturnType<typeof makeConnection>; abort: AbortConnection },
) {
  try {
    await deps.serve(made.connection)
    made.connection.expectNothing()
    await closeAfterReply(socket)
  } catch (error) {
    const isIncomplete = error instanceof IncompleteRequest
    // An error on a destroyed socket means that the client left, which is not a failure of the service.
    if (!socket.destroyed && !isIncomplete) deps.onFailure(error)
    abort(made.toFailureReply(isIncomplete ? incompleteFailure : abortedFailure))
  }
}

/** Connections beyond the limit, each of which gets a reply. */
function makeRejections({ replies }: Deps) {
  const waiting = new Map<Socket, AbortConnection>()
  return {
    async add(socket: Socket, abort: AbortConnection) {
      if (waiting.size >= maxRejected) {
        abort(replies.fail(fullFailure))
        return
      }
      waiting.set(socket, abort)
      const firstBytes = await readFirstBytes(socket)
      await closeAfterReply(socket, replies.fail(fullFailure, firstBytes))
      waiting.delete(socket)
    },
    abortAll() {
      for (const [socket, abort] of waiting) if (!socket.destroyed) abort(replies.fail(fullFailure))
    },
  }
}

type Served = { isBusy(): boolean; hasReplied(): boolean; whenEnded: Promise<void>; abort(): void }

function watchTls({ setContext }: ReturnType<typeof makeHandshakes>, { tls, log }: Deps) {
  if (tls === undefined) return undefined
  return watchCertificate({ files: tls.files, apply: () => setContext(tls.read()), log })
}

export type Listener = Awaited<ReturnType<typeof openListener>>
