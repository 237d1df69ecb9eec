import type { Socket } from 'node:net'
import { makeSpeedGuard } from '../runtime/timers.ts'
import { type Failure, timeoutFailure } from './listener-scan.ts'

/** The last bytes that are sent to a client. */
export type LastReplies = {
  /** To a client that is too slow with a command or request. */
  timeout: string
  /** To a client that is not served, or whose connection must end; `firstBytes` are those that it sent, if known. */
  fail(failure: Failure, firstBytes?: Buffer): string
}

/** A connection of a client, as the protocol handlers see it. */
export type Connection = {
  /** Address of the client; empty for a client of a unix socket. */
  address: string
  /** Yields the bytes of the client. Ends when the client closes its half; throws when the connection breaks. */
  chunks(): AsyncIterable<Buffer>
  /** Sets a deadline for the current command. Bytes of the client do not extend it. */
  expectWithin(ms: number): void
  /** Guards content: silence and slowness end the connection, length does not. */
  expectContent(): void
  /** Stops all deadlines while the client waits for the service. */
  expectNothing(): void
  /** Sets how a failure is told to the client within a command. Undefined stands for the replies of the listener. */
  setFailureReply(toReply: ToFailureReply | undefined): void
  /** Resolves when the bytes are written. A client that reads nothing for 30 s loses the connection. */
  send(bytes: Buffer | string): Promise<void>
  /** Notes that the bytes sent last were a verdict: until the next bytes are sent, an ordinary end is harmless. */
  noteVerdict(): void
  /** Marks the connection as busy: stopping the listener waits for it. */
  setBusy(isBusy: boolean): void
  isStopping(): boolean
}

/** Returns no text while a part of a response has left: any text would become a part of that response. */
type ToFailureReply = (failure: Failure) => string | undefined

const silenceMs = 30_000

/** Thrown by a protocol handler when the client closed its half before the end of its request: no verdict follows. */
export class IncompleteRequest extends Error {}

type ConnectionDeps = { address: string; isStopping(): boolean; replies: LastReplies; abort: AbortConnection }

export function makeConnection(socket: Socket, deps: ConnectionDeps) {
  let timer: NodeJS.Timeout | undefined
  let guard: ReturnType<typeof makeSpeedGuard> | undefined
  let isBusy = false
  let hasVerdict = false
  let toReply: ToFailureReply | undefined
  /** Defined once a deadline is missed: bytes that still arrive are discarded. */
  let drain: ReturnType<typeof startDrain> | undefined

  const closeAfterTimeout = () => {
    if (socket.destroyed || drain !== undefined) return
    const reply = toReply === undefined ? deps.replies.timeout : toReply(timeoutFailure)
    drain = startDrain(socket)
    if (reply === undefined) deps.abort(undefined)
    else socket.end(reply)
  }
  const setTimer = (ms: number | undefined) => {
    clearTimeout(timer)
    timer = ms === undefined ? undefined : setTimeout(closeAfterTimeout, ms)
  }

  const connection: Connection = {
    address: deps.address,
    async *chunks() {
      for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        if (guard !== undefined) {
          setTimer(silenceMs)
          if (guard.add(chunk.length) !== undefined) closeAfterTimeout()
        }
        if (drain === undefined) yield chunk
        else drain.discard(chunk)
      }
    },
    expectWithin(ms) {
      guard = undefined
      setTimer(ms)
    },
    expectContent() {
      guard = makeSpeedGuard()
      setTimer(silenceMs)
    },
    expectNothing() {
      guard = undefined
      setTimer(undefined)
    },
    setFailureReply(given) {
      toReply = given
    },
    async send(bytes) {
      if (socket.destroyed || socket.writableEnded) return
      hasVerdict = false
      const writeTimer = setTimeout(() => socket.destroy(), silenceMs)
      // Waits for the write callback, because callers reuse the memory of the bytes afterwards.
      await new Promise<void>((resolve) => socket.write(bytes, () => resolve()))
      clearTimeout(writeTimer)
    },
    noteVerdict() {
      hasVerdict = true
    },
    setBusy(value) {
      isBusy = value
    },
    isStopping: deps.isStopping,
  }
  return {
    connection,
    isBusy: () => isBusy,
    hasVerdict: () => hasVerdict,
    toFailureReply: (failure: Failure) => (toReply ?? deps.replies.fail)(failure),
    stopTimer: () => setTimer(undefined),
  }
}

const drainMs = 5000
const maxDrainBytes = 256 * 1024 * 1024

/** Bounds how long and how much is still read from a client after the last reply. */
function startDrain(socket: Socket, maxBytes = maxDrainBytes) {
  const timer = setTimeout(() => socket.destroy(), drainMs)
  socket.once('close', () => clearTimeout(timer))
  let bytes = 0
  return {
    discard(chunk: Buffer) {
      bytes += chunk.length
      if (bytes > maxBytes) socket.destroy()
    },
  }
}

/**
 * Closes a connection after its last reply: ends our half, then discards what the client still sends, up to 256 MB
 * within 5 s. Closing with unread bytes would reset the connection, and the client would lose the reply.
 */
export async function closeAfterReply(socket: Socket, reply = '', maxBytes = maxDrainBytes) {
  if (socket.destroyed) return
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('data', startDrain(socket, maxBytes).discard)
  socket.end(reply)
  socket.resume()
  await closed
}

/**
 * Ends a connection without a verdict. A transport that cannot tell that by a reset sends the reply; without a reply, a
 * part of a response has left and is broken off.
 */
export type AbortConnection = (reply: string | undefined) => void

/**
 * Ends a connection whose client got no reply. Some clients take an ordinary end without a reply for a clean verdict,
 * so the connection is reset. `raw` is the TCP connection, below TLS if there is TLS; undefined for a unix socket,
 * which cannot be reset.
 */
export function resetConnection(socket: Socket, raw: Socket | undefined) {
  // A reset waits for bytes that the client does not read, and would take back a reply that it has yet to read.
  if (raw === undefined || socket.writableLength > 0 || socket.writableEnded) socket.destroy()
  else raw.resetAndDestroy()
}

/**
 * Ends a connection with a reply in place of a verdict, where the client may not see a reset: unix sockets have none,
 * and tunnels for clients without TLS turn it into an ordinary end. The rest of the request is read beside the
 * protocol handler, which may wait for a scan: closing with unread bytes would lose the reply.
 */
export function replyAndClose(socket: Socket, reply: string) {
  if (socket.destroyed) return
  if (socket.writableLength > 0 || socket.writableEnded) {
    socket.destroy()
    return
  }
  const { discard } = startDrain(socket)
  const readAll = () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) discard(chunk)
  }
  socket.on('readable', readAll)
  socket.end(reply)
  readAll()
}

/** Returns the first bytes of a client, or none if it closes its half or sends nothing for 5 s. */
export async function readFirstBytes(socket: Socket): Promise<Buffer> {
  return new Promise((resolve) => {
    const finish = (bytes: Buffer) => {
      clearTimeout(timer)
      resolve(bytes)
    }
    const timer = setTimeout(() => finish(Buffer.alloc(0)), drainMs)
    socket.once('data', finish)
    for (const event of ['end', 'close']) socket.once(event, () => finish(Buffer.alloc(0)))
  })
}
