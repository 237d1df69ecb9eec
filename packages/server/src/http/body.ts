import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { maxJsonBytes, maxJsonDepth } from '@assay/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parse } from 'secure-json-parse'
import { malformed, Problem } from '../domain/problem.ts'
import { makeSpeedGuard } from '../runtime/timers.ts'
import { requireMediaType } from './request.ts'

const idleMs = 30_000
/** Limits of `discardRest`: bytes that must arrive in a period, and the longest time in all. */
const lingering = { minBytes: 64 * 1024, periodMs: 5000, totalMs: 30_000, checkMs: 500 }

/** Chunks below this size are combined before `take` sees them, from the fifth one on. */
const smallBytes = 1024
const smallAtOnce = 4
const combinedBytes = 4096

/** The choice of `take` after a chunk: wait for this promise before the next chunk, stop reading, or continue. */
type AfterChunk = Promise<void> | 'stop' | undefined

/** Makes Fastify parse no body in this scope: handlers read bodies themselves, as streams. */
export function leaveBodiesToHandlers(app: FastifyInstance) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
}

/**
 * Runs a handler that reads the body before Fastify chooses a parser by the media type: that takes about 15 µs, as much
 * as everything that the handler itself does with a small body. The hook calls `done` for errors only: without it,
 * Fastify goes on neither to a parser nor to the handler of the route.
 */
export const runBeforeParsing = (handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>) => ({
  preParsing(request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: (error: Error) => void) {
    handler(request, reply)
      .then((payload) => void reply.send(payload))
      .catch(done)
  },
  handler(): never {
    throw new Error('The handler runs before parsing')
  },
})

/**
 * Passes the chunks of the body to `take`. Reading fails after 30 s of silence, below 1 KB/s over a minute, or after an
 * hour in all. Stopping early leaves the request open, so that it can still be answered.
 */
export async function readBody(
  request: FastifyRequest,
  reply: FastifyReply,
  take: (chunk: Buffer) => AfterChunk,
): Promise<void> {
  const { raw } = request
  // HTTP/1.0 has no interim responses: its clients would read this one as the final response.
  if (raw.headers.expect !== undefined && raw.httpVersionMinor > 0) reply.raw.writeContinue()
  // A request that is already destroyed emits no further event: reading it would never end.
  if (raw.destroyed) throw malformed('The body ended before it was complete.')
  if (!hasArrived(raw)) return readChunks(raw, take)
  const bytes: Buffer | null = raw.read()
  // The end of the body still has to be read, or Node takes the request for unread.
  raw.resume()
  const after = bytes === null ? undefined : take(bytes)
  if (after instanceof Promise) await after
}

/**
 * Whether the whole body waits to be read. A small body mostly arrives with its head, so its reader needs neither
 * events nor a timer.
 */
const hasArrived = (raw: IncomingMessage) =>
  raw.complete || raw.readableLength === Number(raw.headers['content-length'])

/** Reads by events and one timer: an iterator costs more than everything else about a small body. */
function readChunks(raw: IncomingMessage, take: (chunk: Buffer) => AfterChunk): Promise<void> {
  return new Promise((resolve, reject) => {
    const guard = makeSpeedGuard()
    const startIdleTimer = () =>
      setTimeout(() => complete(() => reject(tooSlow('The body stalled for 30 seconds.'))), idleMs)
    let idle = startIdleTimer()

    let isCompleted = false
    const complete = (callback: () => void) => {
      isCompleted = true
      clearTimeout(idle)
      combiner.stop()
      raw.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
      // An error event without a listener would end the process.
      raw.on('error', () => {})
      callback()
    }
    const fail = (error: unknown) => {
      raw.pause()
      complete(() => reject(error))
    }
    const onEnd = () => {
      // The body has arrived whole: Node closes the request now, and the wait for storage is not the client's silence.
      raw.off('close', onBroken)
      clearTimeout(idle)
      try {
        const rest = combiner.takeRest()
        const after = rest === undefined ? undefined : take(rest)
        if (after instanceof Promise) after.then(() => complete(resolve), fail)
        else complete(resolve)
      } catch (error) {
        fail(error)
      }
    }
    // The client may be gone and never read this problem, but the log records it.
    const onBroken = (error?: unknown) => fail(malformed('The body ended before it was complete.', { cause: error }))
    /** Pauses the request. The time that the client waits for us counts neither as silence nor as slowness. */
    const waitFor = (whenReady: Promise<void>) => {
      const since = performance.now()
      clearTimeout(idle)
      whenReady.then(() => {
        if (isCompleted) return
        guard.excludeWait(performance.now() - since)
        idle = startIdleTimer()
        raw.resume()
      }, fail)
    }
    const onData = (chunk: Buffer) => {
      try {
        idle.refresh()
        const slowness = guard.add(chunk.length)
        if (slowness !== undefined) throw tooSlow(slowness)
        const bytes = combiner.add(chunk)
        if (bytes !== undefined) pass(bytes)
      } catch (error) {
        fail(error)
      }
    }
    const pass = (bytes: Buffer) => {
      const after = take(bytes)
      if (after === undefined) return
      raw.pause()
      if (after === 'stop') return complete(resolve)
      waitFor(after)
    }
    const combiner = makeCombiner((rest) => {
      try {
        pass(rest)
      } catch (error) {
        fail(error)
      }
    })
    raw.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
  })
}

/**
 * Combines small chunks of the same turn of the event loop, because a chunk of one byte costs its reader as much as a
 * long one. `onTurnEnd` gets the chunks that are left at the end of the turn.
 */
function makeCombiner(onTurnEnd: (rest: Buffer) => void) {
  let smallCount = 0
  let chunks: Buffer[] = []
  let length = 0
  let ending: NodeJS.Immediate | undefined

  function takeRest(): Buffer | undefined {
    clearImmediate(ending)
    ending = undefined
    if (length === 0) return undefined
    const rest = Buffer.concat(chunks, length)
    chunks = []
    length = 0
    return rest
  }

  const endTurn = () => {
    const rest = takeRest()
    if (rest !== undefined) onTurnEnd(rest)
  }

  return {
    /** Returns the bytes that are to be read now, if any. */
    add(chunk: Buffer): Buffer | undefined {
      const isSmall = chunk.length < smallBytes
      if (length === 0 && (!isSmall || ++smallCount <= smallAtOnce)) return chunk
      chunks.push(chunk)
      length += chunk.length
      if (!isSmall || length >= combinedBytes) return takeRest()
      ending ??= setImmediate(endTurn)
      return undefined
    },
    takeRest,
    stop: () => clearImmediate(ending),
  }
}

const tooSlow = (detail: string) => new Problem({ kind: 'request-timeout', detail })

/**
 * Reads and drops the rest of a body whose response is already sent, for up to 30 s, or 5 s of a client that hardly sends.
 * Closing the connection at once would reset it, and a client that is still sending would lose the response.
 */
export function discardRest(request: FastifyRequest) {
  const { raw } = request
  const { socket } = raw
  if (raw.complete || raw.destroyed) return
  const startedAt = performance.now()
  let last = { bytes: socket.bytesRead, at: startedAt }
  const timer = setInterval(() => {
    const now = performance.now()
    if (socket.bytesRead - last.bytes >= lingering.minBytes) last = { bytes: socket.bytesRead, at: now }
    if (now - last.at > lingering.periodMs || now - startedAt > lingering.totalMs) socket.destroy()
  }, lingering.checkMs)
  raw.once('close', () => clearInterval(timer))
  raw.once('end', () => {
    clearInterval(timer)
    if (socket.writableEnded) socket.destroy()
  })
  raw.on('error', () => {})
  raw.resume()
}

/**
 * Keeps Node from closing a connection while its client is still sending the body of a request that has its response:
 * only the half of the service is closed, and `discardRest` closes the other one. `findRequest` finds the request.
 */
export function closeGently(socket: Socket, findRequest: () => IncomingMessage | undefined) {
  socket.destroySoon = () => {
    const request = findRequest()
    if (request === undefined || request.complete || !hasBody(request)) Socket.prototype.destroySoon.call(socket)
    else socket.end()
  }
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

/** Reads a JSON body and returns its members; a value that is not an object has none. */
export async function readJsonBody(request: FastifyRequest, reply: FastifyReply): Promise<Record<string, unknown>> {
  requireMediaType(request, 'application/json')
  const text = await readText(request, reply)
  if (isTooDeep(text)) throw malformed(`The JSON is nested more than ${maxJsonDepth} levels deep.`)
  let value: unknown
  try {
    value = parse(text, undefined, { protoAction: 'error', constructorAction: 'ignore' })
  } catch {
    throw malformed('The body is not valid JSON.')
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

async function readText(request: FastifyRequest, reply: FastifyReply): Promise<string> {
  const tooLarge = () =>
    new Problem({ kind: 'content-too-large', detail: `The JSON body is larger than ${maxJsonBytes} bytes.` })
  if (Number(request.headers['content-length'] ?? 0) > maxJsonBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  await readBody(request, reply, (chunk) => {
    bytes += chunk.length
    if (bytes > maxJsonBytes) throw tooLarge()
    chunks.push(chunk)
    return undefined
  })
  try {
    // The decoder removes a byte order mark and rejects bytes that are not UTF-8.
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw malformed('The body is not valid UTF-8.')
  }
}

/** Checks the nesting before parsing, because deep nesting would exhaust the stack of a recursive parser. */
function isTooDeep(text: string): boolean {
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const c = text[i]
    if (inString) {
      if (c === '\\') i++
      else if (c === '"') inString = false
    } else if (c === '"') inString = true
    else if (c === '{' || c === '[') {
      depth++
      if (depth > maxJsonDepth) return true
    } else if (c === '}' || c === ']') depth--
  }
  return false
}
