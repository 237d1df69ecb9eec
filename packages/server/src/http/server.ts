import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { headers, maxHeaderBytes } from '@assay/contract'
import cors from '@fastify/cors'
import fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import { StorageUnavailable } from '../domain/ports/content-store.ts'
import { Problem } from '../domain/problem.ts'
import type { Logger, RequestLine } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { discardRest } from './body.ts'
import { boundConnections } from './connection-bound.ts'
import { checkFraming, makeClientErrorHandler, watchConnections } from './framing.ts'
import { observeAnswers } from './hooks/observe.ts'
import { sendProblem, toPath } from './problem-response.ts'
import { type HealthDeps, isHealth, registerHealth } from './routes/health.ts'
import { registerPages } from './routes/pages.ts'
import { registerV1, type V1Deps } from './routes/v1.ts'
import { newTraceId } from './trace.ts'
import { isUnroutable, watchRoutes } from './unmatched.ts'

/** It was tried for some seconds already. */
const storageRetrySeconds = 10

export type HttpDeps = V1Deps &
  HealthDeps & {
    log: Logger
    logRequest(line: RequestLine): void
    metrics: Metrics
    countRejectedRequest(accountId: string, status: number): void
    /** False on a node that scans for others: it answers for its health alone. */
    servesApi: boolean
    publicUrl: string | undefined
    corsOrigins: string[]
    tls: { cert: string; key: string } | undefined
    /** What else is served here. */
    registerMore: ((scope: FastifyInstance) => void)[]
    /** The database is away, which is told apart from our own faults. */
    isOutage(error: unknown): boolean
    maxConnections: number
  }

export async function makeHttpServer(deps: HttpDeps): Promise<FastifyInstance> {
  const app = openApp(deps)
  app.decorate('publicUrl', deps.publicUrl)
  const answerUnmatched = watchRoutes(app, deps)
  watchConnections(app, deps)
  const connections = boundConnections(app.server, deps.maxConnections)
  deps.metrics.gauge('assay_http_connections', 'Open connections of clients.', connections.countOpen)
  deps.metrics.gauge('assay_http_connections_refused', 'Connections beyond the bound.', connections.countRefused)
  observeAnswers(app, deps)

  // Hooks that wait for nothing take the callback form: they run for every request, and a promise costs more than they do.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header(headers.region, deps.region)
    // Whoever comes again, comes to another one.
    if (deps.readiness.isStopping()) reply.header('Connection', 'close')
    if (isUnroutable(toPath(request))) {
      answerUnmatched(request, reply)
      return
    }
    if (connections.isSurplus(request)) {
      reply.header('Connection', 'close')
      if (!isHealth(toPath(request))) return done(new Problem({ kind: 'overloaded', retryAfterSeconds: 5 }))
    }
    const fault = checkFraming(request)
    // Who cannot speak HTTP is not spoken to any further. A broken body is another matter: it may still be on its way, and
    // its client would lose the answer to a closed connection.
    if (fault !== undefined) reply.header('Connection', 'close')
    done(fault)
  })
  app.addHook('onResponse', (request, _reply, done) => {
    discardRest(request)
    done()
  })
  app.setNotFoundHandler(answerUnmatched)
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    if (error instanceof Problem) {
      const { refusal } = error
      if (refusal.kind === 'request-timeout') reply.header('Connection', 'close')
      return sendProblem(request, reply, refusal)
    }
    if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
      const detail = 'The Content-Type is not a media type.'
      return sendProblem(request, reply, { kind: 'unsupported-media-type', detail })
    }
    if (error instanceof StorageUnavailable) {
      deps.log.warn({ traceId: request.id, err: error }, 'the content could not be stored')
      const detail = 'The content cannot be stored at the moment. Nothing was charged.'
      return sendProblem(request, reply, { kind: 'overloaded', retryAfterSeconds: storageRetrySeconds, detail })
    }
    // Reads, and what comes before a charge; the gate speaks for itself.
    if (deps.isOutage(error)) return sendProblem(request, reply, { kind: 'unavailable', retryAfterSeconds: 5 })
    deps.metrics.countFailure()
    deps.log.error({ traceId: request.id, err: error }, 'request failed')
    return sendProblem(request, reply, { kind: 'internal' })
  })

  if (deps.corsOrigins.length > 0) await registerCors(app, deps.corsOrigins)
  await app.register(async (scope) => registerHealth(scope, deps))
  if (deps.servesApi) {
    await app.register(async (scope) => registerPages(scope, deps))
    await app.register(async (scope) => registerV1(scope, deps))
    for (const registerOne of deps.registerMore) await app.register(async (scope) => registerOne(scope))
  }
  await app.ready()
  return app
}

function openApp(deps: HttpDeps): FastifyInstance {
  return fastify({
    // We write what there is to say ourselves, one line for each answer; see hooks/observe.ts.
    logger: false,
    genReqId: (request) => newTraceId(request.headers.traceparent as string | undefined),
    clientErrorHandler: makeClientErrorHandler(deps),
    // A path that cannot be decoded matches nothing. No hook runs for it, so it is logged here.
    frameworkErrors(error, request, reply) {
      const { id: traceId, method } = request
      deps.log.info({ traceId, method, path: toPath(request), status: 404, reason: error.code }, 'request refused')
      sendProblem(request, reply.header(headers.region, deps.region), { kind: 'not-found' })
    },
    rewriteUrl: (request) => toServedUrl(request.url ?? '/'),
    routerOptions: { ignoreTrailingSlash: true, caseSensitive: false, maxParamLength: maxHeaderBytes },
    // While stopping, what still arrives on an open connection is answered and the connection closed.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // The server is made below; this only tells Fastify which scheme its address has. Its type would make it choose.
    ...({ https: deps.tls } as object),
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
  if (url.startsWith('/v1/')) return url
  const path = /^https?:\/\/[^/?#]+(.*)$/i.exec(url)?.[1] ?? url
  const rooted = path.startsWith('/') ? path : `/${path}`
  return /^\/reference(?=$|\?)/i.test(rooted) ? `/reference/${rooted.slice('/reference'.length)}` : rooted
}

async function registerCors(app: FastifyInstance, origins: string[]) {
  const options = {
    origin: origins,
    methods: ['GET', 'HEAD', 'POST'],
    allowedHeaders: [
      headers.apiKey,
      headers.idempotencyKey,
      headers.test,
      'Content-Type',
      'If-None-Match',
      'traceparent',
    ],
    exposedHeaders: [
      ...[headers.result, headers.creditLimit, headers.creditRemaining, headers.retryAfter],
      ...[headers.rateLimit, headers.rateRemaining, headers.rateReset, 'ETag'],
    ],
    maxAge: 600,
  }
  await app.register(cors, {
    // OPTIONS that is no preflight is a method like any other: it gets our 405, not the plugin's 400.
    delegator: ({ headers }, done) =>
      done(null, { ...options, preflight: 'origin' in headers && 'access-control-request-method' in headers }),
  })
}
