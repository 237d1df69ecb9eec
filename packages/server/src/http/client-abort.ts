import type { FastifyReply } from 'fastify'

/** Aborted when the client has left before its answer: then nobody wants the rest of the work. */
export function abortWhenClientLeaves({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (raw.destroyed && !raw.writableFinished) gone.abort(new Error('The client has left'))
  raw.once('close', () => {
    if (!raw.writableFinished) gone.abort(new Error('The client has left'))
  })
  return gone.signal
}
