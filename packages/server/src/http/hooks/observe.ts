import type { FastifyInstance } from 'fastify'
import type { RequestLine } from '../../runtime/logger.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { toPath } from '../problem-response.ts'

/** One log line and one observation for each answer. Neither has headers, queries or bodies in it. */
export function observeAnswers(app: FastifyInstance, deps: { logRequest(line: RequestLine): void; metrics: Metrics }) {
  app.decorateRequest('operationId', undefined)
  app.addHook('onResponse', (request, reply, done) => {
    const ms = reply.elapsedTime
    // Tests are slow and fail as they are told to: apart, or they would be taken for the service's own ways.
    const operation = request.caller?.isTest === true ? 'test' : request.operationId
    deps.metrics.observeRequest(operation ?? 'other', reply.statusCode, ms / 1000)
    deps.logRequest({
      traceId: request.id,
      method: request.method,
      path: toPath(request),
      status: reply.statusCode,
      ms: Math.round(ms * 10) / 10,
      accountId: request.caller?.accountId,
    })
    done()
  })
}
