import type { FastifyReply, FastifyRequest } from 'fastify'
import { malformed, Problem } from '../domain/problem.ts'
import { makeSpeedGuard } from '../runtime/speed-guard.ts'

const idleMs = 30_000
const lingerMs = 5000

/** What to do after a chunk: wait for this before the next one, read no further, or just go on. */
type AfterChunk = Promise<void> | 'stop' | undefined

/**
 * Gives the body's chunks to `take`, under guard: 30 s of silence, less than 1 KB a second over a minute, or an hour in all
 * end it. Stopping early leaves the request open, so that it can still be answered. Events and one timer, no iterator:
 * for a small body that costs more than everything else about it.
 */
export function readBody(
  request: FastifyRequest,
  reply: FastifyReply,
  take: (chunk: Buffer) => AfterChunk,
): Promise<void> {
  const { raw } = request
  // HTTP/1.0 knows no interim answers and would take this one for the last.
  if (raw.headers.expect !== undefined && raw.httpVersionMinor > 0) reply.raw.writeContinue()
  return new Promise((resolve, reject) => {
    // Gone before we came to look: it would never say so again.
    if (raw.destroyed) throw malformed('The body ended before it was complete.')
    const guard = makeSpeedGuard()
    const expectMore = () =>
      setTimeout(() => complete(() => reject(tooSlow('The body stalled for 30 seconds.'))), idleMs)
    let idle = expectMore()

    let isCompleted = false
    const complete = (answer: () => void) => {
      isCompleted = true
      clearTimeout(idle)
      raw.off('data', onData).off('end', onEnd).off('error', onBroken).off('close', onBroken)
      // Without anybody listening an error would end the process.
      raw.on('error', () => {})
      answer()
    }
    const fail = (error: unknown) => {
      raw.pause()
      complete(() => reject(error))
    }
    const onEnd = () => complete(resolve)
    // The client left or the connection broke. Nobody may be there to read this, but the log tells it.
    const onBroken = (error?: unknown) => fail(malformed('The body ended before it was complete.', { cause: error }))
    /** That the client has to wait for us is not its fault. */
    const waitFor = (caughtUp: Promise<void>) => {
      const since = performance.now()
      clearTimeout(idle)
      caughtUp.then(() => {
        if (isCompleted) return
        guard.forgive(performance.now() - since)
        idle = expectMore()
        raw.resume()
      }, fail)
    }
    const onData = (chunk: Buffer) => {
      try {
        idle.refresh()
        const late = guard.add(chunk.length)
        if (late !== undefined) throw tooSlow(late)
        const after = take(chunk)
        if (after === undefined) return
        raw.pause()
        if (after === 'stop') return complete(resolve)
        waitFor(after)
      } catch (error) {
        fail(error)
      }
    }
    raw.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
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
