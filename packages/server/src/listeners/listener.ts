import { createServer, type Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import type { Logger } from '../runtime/logger.ts'
import { watchCertificate } from '../runtime/watch-files.ts'
import {
  type AbortConnection,
  type Connection,
  closeAfterReply,
  IncompleteRequest,
  type LastReplies,
  makeConnection,
  readFirstBytes,
  replyAndClose,
  resetConnection,
} from './connection.ts'
import { makeHandshakes } from './handshakes.ts'
import { type ListenAddress, listenOn } from './listen-address.ts'
import { abortedFailure, type Failure, fullFailure, incompleteFailure, refusedFailure } from './listener-scan.ts'

/** Connections that are not served, and may wait for their reply at the same time. Further ones end at once. */
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
 * socket cannot be reset, and a tunnel turns the reset of a TLS connection into an ordinary end: their clients get the
 * reply for a failure instead.
 */
export async function openListener(deps: Deps) {
  const { address } = deps
  const isUnix = 'path' in address
  const rejections = makeRejections(deps)
  const connections = new Map<Socket, Served>()
  let stopping = false
  let cutTimer: NodeJS.Timeout | undefined

  const toAbort = isUnix || deps.tls ? abortByReply : abortByReset
  const handshakes =
    deps.tls &&
    makeHandshakes({
      ...deps.tls,
      context: deps.tls.read(),
      // Clients that would get a reply without TLS also get it when all of them connect at once.
      maxPending: deps.maxConnections + maxRejected,
      onSecure: start,
      onRefused: rejections.reset,
      onUnwanted: (socket, raw, reason) => rejections.reply(socket, toAbort(socket, raw), refusedFailure, reason),
    })
  const stopWatching = handshakes && watchTls(handshakes, deps)

  // Half-open connections are allowed: a client may close its half and still wait for the reply.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (raw) => {
    // The code that reads from a socket sees its errors; without any listener they would end the process.
    raw.on('error', () => {})
    if (deps.allows?.(raw.remoteAddress ?? '') === false)
      rejections.reset(raw, 'its address is in none of the networks')
    else if (handshakes === undefined) start(raw, raw)
    else if (stopping) raw.resetAndDestroy()
    else handshakes.begin(raw)
  })

  /** Serves a connection. `raw` is the connection below TLS, otherwise the same socket. */
  function start(socket: Socket, raw: Socket) {
    const abort = toAbort(socket, raw)
    if (connections.size >= deps.maxConnections || stopping) {
      rejections.reply(socket, abort, fullFailure, stopping ? undefined : 'too many connections are open')
      return
    }
    const about = { address: raw.remoteAddress ?? '', isStopping: () => stopping }
    const made = makeConnection(socket, { ...about, replies: deps.replies, abort })
    const whenEnded = serve(deps, { socket, made, abort }).finally(() => {
      made.stopTimer()
      connections.delete(socket)
    })
    const abortWithReply = () => abort(made.toFailureReply(abortedFailure))
    connections.set(socket, { isBusy: made.isBusy, hasVerdict: made.hasVerdict, whenEnded, abort: abortWithReply })
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
    for (const [socket, { isBusy, hasVerdict, abort }] of connections) {
      if (isBusy()) continue
      // A request of a client without a verdict may be on its way; idle clients with one expect an ordinary end.
      if (hasVerdict()) socket.destroySoon()
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
    countRejected: rejections.count,
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

const abortByReset =
  (socket: Socket, raw: Socket): AbortConnection =>
  () =>
    resetConnection(socket, raw)

/**
 * Ends connections of unix sockets and of TLS. A response that has begun is broken off, by a reset where TCP is below.
 */
const abortByReply =
  (socket: Socket, raw: Socket): AbortConnection =>
  (reply) => {
    if (reply !== undefined) replyAndClose(socket, reply)
    else resetConnection(socket, raw === socket ? undefined : raw)
  }

/** Connections that are not served. */
function makeRejections({ replies, onRejected }: Deps) {
  const waiting = new Map<Socket, () => void>()
  let count = 0

  const note = ({ remoteAddress = '' }: Socket, reason: string | undefined) => {
    count++
    if (reason !== undefined) onRejected(remoteAddress, reason)
  }

  return {
    count: () => count,
    reset(raw: Socket, reason: string) {
      note(raw, reason)
      raw.resetAndDestroy()
    },
    /** Replies to a connection before it ends. Without a reason, the connection is counted and not reported. */
    async reply(socket: Socket, abort: AbortConnection, failure: Failure, reason: string | undefined) {
      note(socket, reason)
      const abortWithReply = () => abort(replies.fail(failure))
      if (waiting.size >= maxRejected) {
        abortWithReply()
        return
      }
      waiting.set(socket, abortWithReply)
      const firstBytes = await readFirstBytes(socket)
      await closeAfterReply(socket, replies.fail(failure, firstBytes))
      waiting.delete(socket)
    },
    abortAll() {
      for (const [socket, abort] of waiting) if (!socket.destroyed) abort()
    },
  }
}

type Served = { isBusy(): boolean; hasVerdict(): boolean; whenEnded: Promise<void>; abort(): void }

function watchTls({ setContext }: ReturnType<typeof makeHandshakes>, { tls, log }: Deps) {
  if (tls === undefined) return undefined
  return watchCertificate({ files: tls.files, apply: () => setContext(tls.read()), log })
}

export type Listener = Awaited<ReturnType<typeof openListener>>
