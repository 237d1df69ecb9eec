import type { FastifyInstance } from 'fastify'
import type { Logger } from '../../runtime/logger.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { toPath } from '../problem-response.ts'

/** One log line and one observation for each answer. Neither has headers, queries or bodies in it. */
export function observeAnswers(app: FastifyInstance, deps: { log: Logger; metrics: Metrics }) {
  app.addHook('onResponse', (request, reply, done) => {
    const { operation } = request.routeOptions.config
    const seconds = reply.elapsedTime / 1000
    deps.metrics.observeRequest(operation?.id ?? 'other', reply.statusCode, seconds)
    deps.log.info(
      {
        traceId: request.id,
        method: request.method,
        path: toPath(request),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        accountId: request.caller?.accountId,
      },
      'request',
    )
    done()
  })
}
