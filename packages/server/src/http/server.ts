import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { headers, maxHeaderBytes } from '@assay/contract'
import cors from '@fastify/cors'
import fastify, { type FastifyBaseLogger, type FastifyError, type FastifyInstance, LogController } from 'fastify'
import { Problem } from '../domain/problem.ts'
import type { Readiness } from '../domain/readiness.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { discardRest } from './body.ts'
import { checkFraming, makeClientErrorHandler, watchConnections } from './framing.ts'
import { observeAnswers } from './hooks/observe.ts'
import { sendProblem, toPath } from './problem-response.ts'
import { registerHealth } from './routes/health.ts'
import { registerPages } from './routes/pages.ts'
import { registerV1, type V1Deps } from './routes/v1.ts'
import { newTraceId } from './trace.ts'
import { isUnroutable, watchRoutes } from './unmatched.ts'

export type HttpDeps = V1Deps & {
  log: Logger
  metrics: Metrics
  readiness: Readiness
  region: string
  version: string
  publicUrl: string | undefined
  corsOrigins: string[]
  tls: { cert: string; key: string } | undefined
}

export async function makeHttpServer(deps: HttpDeps): Promise<FastifyInstance> {
  const app = openApp(deps)
  app.decorate('publicUrl', deps.publicUrl)
  const answerUnmatched = watchRoutes(app)
  watchConnections(app)
  observeAnswers(app, deps.metrics)

  app.addHook('onRequest', async (request, reply) => {
    reply.header(headers.region, deps.region)
    if (isUnroutable(toPath(request))) return answerUnmatched(request, reply)
    checkFraming(request)
  })
  app.addHook('onResponse', async (request) => discardRest(request))
  app.setNotFoundHandler(answerUnmatched)
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    if (error instanceof Problem) {
      const { refusal } = error
      if (refusal.kind === 'malformed-request' || refusal.kind === 'request-timeout')
        reply.header('Connection', 'close')
      return sendProblem(request, reply, refusal)
    }
    deps.metrics.countFailure()
    request.log.error({ traceId: request.id, err: error }, 'request failed')
    return sendProblem(request, reply, { kind: 'internal' })
  })

  if (deps.corsOrigins.length > 0) await app.register(cors, toCorsOptions(deps.corsOrigins))
  await app.register(async (scope) => registerHealth(scope, deps))
  await app.register(async (scope) => registerPages(scope, deps))
  await app.register(async (scope) => registerV1(scope, deps))
  await app.ready()
  return app
}

function openApp(deps: HttpDeps): FastifyInstance {
  return fastify({
    // Fastify's own type of a logger is wider than it needs here.
    loggerInstance: deps.log as FastifyBaseLogger,
    // One line for each answer is enough; see hooks/observe.ts.
    logController: new LogController({ disableRequestLogging: true }),
    // No child logger for each request: lines that need the trace id carry it.
    childLoggerFactory: (logger) => logger,
    genReqId: (request) => newTraceId(request.headers.traceparent as string | undefined),
    clientErrorHandler: makeClientErrorHandler(deps.log),
    // A path that cannot be decoded matches nothing.
    frameworkErrors: (_error, request, reply) => sendProblem(request, reply, { kind: 'not-found' }),
    rewriteUrl: (request) => toServedUrl(request.url ?? '/'),
    routerOptions: { ignoreTrailingSlash: true, caseSensitive: false, maxParamLength: maxHeaderBytes },
    // While stopping, what still arrives on an open connection is answered and the connection closed.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    serverFactory: (handler) =>
      deps.tls === undefined
        ? createHttpServer(serverOptions, handler)
        : createHttpsServer({ ...serverOptions, ...deps.tls }, handler),
  })
}

const serverOptions = {
  keepAliveTimeout: 65_000,
  // Bodies have their own guard: a time limit on the whole would cut long uploads.
  requestTimeout: 0,
  maxHeaderSize: maxHeaderBytes,
  headersTimeout: 15_000,
  // Node looks for late headers every 30 s by default, which makes 15 s mean up to 45.
  connectionsCheckingInterval: 1000,
  // Refused by us, with a body that says why.
  requireHostHeader: false,
}

/** A proxy may send the whole address as the request line; and the reference is served with and without its slash. */
function toServedUrl(url: string): string {
  const path = /^https?:\/\/[^/?#]+(.*)$/i.exec(url)?.[1] ?? url
  const rooted = path.startsWith('/') ? path : `/${path}`
  return /^\/reference(?=$|\?)/i.test(rooted) ? `/reference/${rooted.slice('/reference'.length)}` : rooted
}

const toCorsOptions = (origins: string[]) => ({
  origin: origins,
  methods: ['GET', 'HEAD', 'POST'],
  allowedHeaders: [headers.apiKey, 'Content-Type', 'Idempotency-Key', 'traceparent'],
  exposedHeaders: [
    ...[headers.result, headers.creditLimit, headers.creditRemaining, headers.retryAfter],
    ...[headers.rateLimit, headers.rateRemaining, headers.rateReset],
  ],
  maxAge: 600,
})
