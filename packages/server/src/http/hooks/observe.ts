import type { FastifyInstance } from 'fastify'
import type { RequestLine } from '../../runtime/logger.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { toPath } from '../problem-response.ts'

type Deps = {
  logRequest(line: RequestLine): void
  metrics: Metrics
  /** Told of every request of a known account that was refused. */
  countRejectedRequest(accountId: string, status: number): void
}

/** One log line and one observation for each answer. Neither has headers, queries or bodies in it. */
export function observeAnswers(app: FastifyInstance, deps: Deps) {
  app.decorateRequest('operationId', undefined)
  app.addHook('onResponse', (request, reply, done) => {
    const ms = reply.elapsedTime
    const accountId = request.caller?.accountId
    if (reply.statusCode >= 400 && accountId !== undefined) deps.countRejectedRequest(accountId, reply.statusCode)
    // Tests are slow and fail as they are told to: apart, or they would be taken for the service's own ways.
    const operation = request.caller?.isTest === true ? 'test' : request.operationId
    deps.metrics.observeRequest(operation ?? 'other', reply.statusCode, ms / 1000)
    deps.logRequest({
      traceId: request.id,
      method: request.method,
      path: toPath(request),
      status: reply.statusCode,
      ms: Math.round(ms * 10) / 10,
      accountId,
    })
    done()
  })
}
