import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { toNetwork } from '../domain/console/throttle.ts'
import { newCache } from '../domain/new-cache.ts'

/** Requests of one connection that are handled at once. Further ones, which the client pipelined, wait. */
const maxInProgress = 4
/** Pipelined requests that may wait before the connection is read in pieces. */
const maxWaiting = 8
/** Time of the event loop that reading one piece should take. */
const pieceMs = 0.25
const minPieceBytes = 128
const maxPieceBytes = 64 * 1024
/** A connection whose bytes cost more than this rests between its pieces. An ordinary upload takes about 0.005 ms. */
const maxMsPerKilobyte = 0.03
/** A costly connection rests this many times as long as its piece took, so that parsing takes a fifth of the time. */
const restFactor = 4
/** Networks whose new connections are read in pieces from their first byte. */
const costlyNetworks = { entries: 10_000, ttlMs: 10 * 60_000 }

const headEnd = Buffer.from('\r\n\r\n')

/** The requests of a connection. */
type Turns = {
  inProgress: number
  waiting: [IncomingMessage, ServerResponse][]
  latest: IncomingMessage | undefined
  isReadInPieces: boolean
  /** Begins the next request that waits. */
  advancing: NodeJS.Immediate | undefined
  /** Called when another request may begin. */
  onRoom: () => void
}
const turnsOfSocket = Symbol('requests of this connection')
/** `_paused` is set while Node waits for the client to read its responses. Node fails if it gets bytes meanwhile. */
type TrackedSocket = Socket & { [turnsOfSocket]?: Turns; _paused?: boolean }

/**
 * Keeps one connection from holding up the others. Node parses all bytes of a read, up to 64 KB, at once: thousands of
 * pipelined requests, or ten thousand chunks of one byte. Therefore a connection has few requests in progress, and one
 * that pipelines or sends chunks is read in pieces that take a fraction of a millisecond each. A connection whose bytes
 * are costly rests between its pieces; new connections of its network are read in pieces from the beginning. All other
 * connections are read by Node itself, which takes 5 µs less for each request.
 */
export function makeTurns() {
  const costly = newCache<true>(costlyNetworks.entries, costlyNetworks.ttlMs)

  return {
    /** Wraps the handler of a server, so that pipelined requests wait for their turn. */
    limitRequests:
      (handler: RequestListener): RequestListener =>
      (request, response) => {
        const socket: TrackedSocket = request.socket
        const turns = getTurns(socket)
        turns.latest = request
        if (turns.inProgress < maxInProgress && turns.waiting.length === 0) begin(handler, turns, request, response)
        else {
          turns.waiting.push([request, response])
          if (turns.waiting.length > maxWaiting) {
            socket.pause()
            noteCostly(socket)
            readInPieces(socket, turns)
          }
        }
        if (request.headers['transfer-encoding'] !== undefined) readInPieces(socket, turns)
      },

    /** Reads new connections of costly networks in pieces. */
    watchConnections(server: Server) {
      const onConnection = (socket: TrackedSocket) => {
        if (costly.size > 0 && costly.has(toNetwork(socket.remoteAddress ?? ''))) readInPieces(socket, getTurns(socket))
      }
      server.on('connection', onConnection)
      server.on('secureConnection', onConnection)
    },
  }

  function noteCostly({ remoteAddress }: Socket) {
    if (remoteAddress !== undefined) costly.set(toNetwork(remoteAddress), true)
  }

  /** Takes the bytes of a connection over from Node, and passes them on piece by piece. */
  function readInPieces(socket: TrackedSocket, turns: Turns) {
    const [pass] = socket.listeners('data') as ((bytes: Buffer) => void)[]
    if (turns.isReadInPieces || pass === undefined) return
    turns.isReadInPieces = true
    let pieceBytes = 1024
    let restsUntil = 0
    /** The last bytes that Node has got from here; it may have got the beginning of a head before. */
    let lastBytes: Buffer = Buffer.alloc(0)
    let timer: NodeJS.Timeout | undefined

    const isFull = () => turns.inProgress + turns.waiting.length >= maxInProgress && turns.latest?.complete !== false
    const resume = () => {
      if (socket._paused !== true && !socket.destroyed) socket.resume()
    }
    const keep = (bytes: Buffer) => {
      socket.pause()
      if (!socket.destroyed) socket.unshift(bytes)
    }
    const rest = (ms: number) => {
      clearTimeout(timer)
      timer = setTimeout(resume, ms)
    }

    turns.onRoom = resume
    socket.on('data', (bytes) => {
      const restMs = restsUntil - performance.now()
      // Only a request that has arrived whole can wait for others: the time limit of Node for a head runs meanwhile.
      if (socket._paused === true || (isFull() && endsHead(lastBytes))) return keep(bytes)
      if (restMs > 0) {
        keep(bytes)
        return rest(restMs)
      }
      const piece = bytes.subarray(0, isFull() ? findHeadEnd(lastBytes, bytes) : findPieceEnd(bytes, pieceBytes))
      lastBytes = Buffer.concat([lastBytes, piece.subarray(-headEnd.length)]).subarray(-headEnd.length)
      const startedAt = performance.now()
      pass(piece)
      const tookMs = performance.now() - startedAt
      if (tookMs > pieceMs) pieceBytes = Math.max(minPieceBytes, pieceBytes >> 1)
      else if (tookMs < pieceMs / 2) pieceBytes = Math.min(maxPieceBytes, pieceBytes * 2)
      if (piece.length === bytes.length) return
      // Node has paused the connection when the reader of the body does not keep up, and resumes it itself.
      const isPausedByNode = socket.isPaused()
      keep(bytes.subarray(piece.length))
      if (isPausedByNode) return
      if (tookMs < (maxMsPerKilobyte * piece.length) / 1024) setImmediate(resume)
      else {
        if (piece.length <= 1024 && tookMs > pieceMs / 2) noteCostly(socket)
        restsUntil = performance.now() + tookMs * restFactor
        rest(tookMs * restFactor)
      }
    })
    socket.off('data', pass)
    socket.once('close', () => clearTimeout(timer))
    // A connection that Node has paused does not read, and the stream does not know of that: it must be told once.
    socket._read(0)
    if (socket.isPaused()) setImmediate(resume)
  }
}

function getTurns(socket: TrackedSocket): Turns {
  socket[turnsOfSocket] ??= {
    inProgress: 0,
    waiting: [],
    latest: undefined,
    isReadInPieces: false,
    advancing: undefined,
    onRoom() {},
  }
  return socket[turnsOfSocket]
}

function begin(handler: RequestListener, turns: Turns, request: IncomingMessage, response: ServerResponse) {
  turns.inProgress++
  response.once('close', () => {
    turns.inProgress--
    advanceLater(handler, turns)
  })
  handler(request, response)
}

/** The next request begins in the next turn of the event loop, behind requests of other connections. */
function advanceLater(handler: RequestListener, turns: Turns) {
  if (turns.waiting.length === 0) turns.onRoom()
  else turns.advancing ??= setImmediate(advance, handler, turns)
}

function advance(handler: RequestListener, turns: Turns) {
  turns.advancing = undefined
  if (turns.inProgress >= maxInProgress) return
  const [request, response] = turns.waiting.shift() ?? []
  if (request === undefined || response === undefined) return
  if (request.socket.destroyed) {
    turns.waiting = []
    return
  }
  begin(handler, turns, request, response)
  if (turns.inProgress < maxInProgress) advanceLater(handler, turns)
}

/** A piece ends behind the last head in it, so that no request waits in the middle of its head. */
function findPieceEnd(bytes: Buffer, most: number): number {
  if (bytes.length <= most) return bytes.length
  const at = most > 4096 ? -1 : bytes.lastIndexOf(headEnd, most - headEnd.length)
  return at === -1 ? most : at + headEnd.length
}

/** The rest of a head, of which `lastBytes` have been passed on; all bytes if it does not end in them. */
function findHeadEnd(lastBytes: Buffer, bytes: Buffer): number {
  const begun = lastBytes.subarray(-(headEnd.length - 1))
  const at = Buffer.concat([begun, bytes]).indexOf(headEnd)
  return at === -1 ? bytes.length : at + headEnd.length - begun.length
}

const endsHead = (lastBytes: Buffer) => lastBytes.equals(headEnd)
