import type { FastifyReply, FastifyRequest } from 'fastify'
import { malformed, Problem } from '../domain/problem.ts'

const idleMs = 30_000
const slowWindowMs = 60_000
const slowBytes = 60 * 1024
const wholeMs = 3_600_000
const lingerMs = 5000

/**
 * The body's chunks, under guard: 30 s of silence, less than 1 KB a second over a minute, or an hour in all end it.
 * Leaving the loop early leaves the request open, so that it can still be answered.
 */
export async function* readBody(request: FastifyRequest, reply: FastifyReply): AsyncGenerator<Buffer> {
  // HTTP/1.0 knows no interim answers and would take this one for the last.
  if (request.raw.headers.expect !== undefined && request.raw.httpVersionMinor > 0) reply.raw.writeContinue()
  const chunks = request.raw.iterator({ destroyOnReturn: false })
  const started = Date.now()
  let windowStart = started
  let windowBytes = 0
  try {
    for (;;) {
      const next = await nextChunk(chunks)
      if (next.done === true) return
      yield next.value
      windowBytes += next.value.length
      const now = Date.now()
      if (now - started >= wholeMs) throw tooSlow('The body took more than an hour.')
      if (now - windowStart < slowWindowMs) continue
      if (windowBytes < slowBytes) throw tooSlow('The body arrived at less than 1 KB a second.')
      windowStart = now
      windowBytes = 0
    }
  } finally {
    // An iterator left open holds the stream, and discardRest could not read on. Not awaited: it may wait for a chunk.
    void chunks.return?.()
  }
}

function nextChunk(chunks: NodeJS.AsyncIterator<Buffer>): Promise<IteratorResult<Buffer>> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(tooSlow('The body stalled for 30 seconds.')), idleMs)
    // The client left or the connection broke. Nobody may be there to read this, but the log tells it.
    const broken = (error: unknown) => reject(malformed('The body ended before it was complete.', { cause: error }))
    chunks
      .next()
      .then(resolve, broken)
      .finally(() => clearTimeout(timer))
  })
}

const tooSlow = (detail: string) => new Problem({ kind: 'request-timeout', detail })

/**
 * For an answer that went out before the body was in. A client that is still sending would lose the answer to a reset
 * connection, so the rest is read and thrown away for a few seconds.
 */
export function discardRest(request: FastifyRequest) {
  const { raw } = request
  if (raw.complete || raw.destroyed) return
  const giveUp = setTimeout(() => raw.socket.destroy(), lingerMs)
  raw.once('close', () => clearTimeout(giveUp))
  raw.once('end', () => clearTimeout(giveUp))
  raw.on('error', () => {})
  raw.resume()
}
