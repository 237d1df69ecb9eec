import type { RequestListener, Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { headers, maxHeaderBytes } from '@assay/contract'
import cors from '@fastify/cors'
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from 'fastify'
import type { Content } from '../domain/content/content.ts'
import type { JobContent } from '../domain/ports/content-store.ts'
import { Problem } from '../domain/problem.ts'
import type { Logger, RequestLine } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { createServer as createHttpServer } from '../runtime/node-http.ts'
import { makeStrangerLimit } from './admission.ts'
import { discardRest } from './body.ts'
import { checkFraming, limitConnections, makeClientErrorHandler, watchConnections } from './connections.ts'
import type { Forward } from './forward.ts'
import { isHealth } from './health.ts'
import { makeErrorHandler, makeUnmatchedHandler, sendProblem } from './problem-response.ts'
import { isUnroutable, newTraceId, toPath } from './request.ts'
import { makeTurns } from './turns.ts'
import { registerV1, type V1Deps } from './v1.ts'

export type HttpDeps<C extends Content = JobContent> = V1Deps<C> & {
  region: string
  /** Aborted when the service begins to stop: clients with open connections should go elsewhere. */
  stopping: AbortSignal
  log: Logger
  logRequest(line: RequestLine): void
  metrics: Metrics
  /** Called for every rejected request of a known account. */
  countRejectedRequest(accountId: string, status: number): void
  /** False on a worker node, which serves only its health checks. */
  servesApi: boolean
  publicUrl: string | undefined
  corsOrigins: string[]
  /** Networks of proxies whose X-Forwarded-For and X-Forwarded-Proto count. */
  trustedProxies: string[]
  tls: { cert: string; key: string } | undefined
  /** Other routes than those of `/v1`: health checks, pages, the console. */
  scopes: ((scope: FastifyInstance) => void)[]
  /** In an HTTP process: passes requests for other routes than those of `/v1` to the main process. */
  forward?: Forward
  /** In the main process of several: HTTP processes pass requests on, with the address of the client. */
  isBehindProcesses?: boolean
  /** True for errors that mean that the database cannot be reached, as opposed to faults of the service. */
  isOutage(error: unknown): boolean
  /** A sentence for errors of changes that the state of the installation forbids. */
  findConflict(error: unknown): string | undefined
  maxConnections: number
}

export async function makeHttpServer<C extends Content>(deps: HttpDeps<C>): Promise<FastifyInstance> {
  const app = openApp(deps)
  app.decorate('publicUrl', deps.publicUrl)
  app.decorate('isBehindProcesses', deps.isBehindProcesses === true)
  const handleUnmatched = makeUnmatchedHandler(app, deps)
  watchConnections(app, deps)
  const connections = openConnectionLimit(app, deps)
  observeResponses(app, deps)
  // Each limit is a few percent of the event loop. They are separate, so that a flood of pages does not delay health
  // checks through the same proxy, nor answer a client with a wrong key by 429.
  const limits = {
    healthChecks: makeStrangerLimit({ perSecond: 200 }),
    others: makeStrangerLimit({ perSecond: 500 }),
  }

  // Hooks that wait for nothing use callbacks: they run for every request, and a promise would cost more than they do.
  app.addHook('onRequest', (request, reply, done) => {
    const needsKey = request.needsKey === true
    if (deps.forward !== undefined && !needsKey) {
      // Requests that the next hook refuses are answered here.
      if (!connections.isSurplus(request) && checkFraming(request) === undefined) return deps.forward(request, reply)
    }
    writeCommonHeaders(reply, deps)
    // While stopping, make keep-alive clients reconnect, so that the balancer sends them elsewhere.
    if (deps.stopping.aborted) reply.header('Connection', 'close')
    // Requests for an operation wait in the admission hook, which knows whether their key is valid.
    if (needsKey) return done()
    const limit = isHealth(toPath(request)) ? limits.healthChecks : limits.others
    limit.waitForTurn(request.ip, request.routeOptions.config?.strangerWeight).then(() => done(), done)
  })
  app.addHook('onRequest', (request, reply, done) => {
    if (isUnroutable(toPath(request))) {
      handleUnmatched(request, reply)
      return
    }
    if (connections.isSurplus(request)) {
      reply.header('Connection', 'close')
      if (!isHealth(toPath(request))) return done(new Problem({ kind: 'overloaded', retryAfterSeconds: 5 }))
    }
    const fault = checkFraming(request)
    // The connection of a client with faulty framing is closed. One with a broken body stays open: the rest of the body
    // may still be on its way, and closing would lose the response.
    if (fault !== undefined) reply.header('Connection', 'close')
    done(fault)
  })
  // A request without a route is answered before Fastify looks at its body, which it rejects for some methods.
  app.addHook('preParsing', (request, reply, _payload, done) => {
    if (request.is404) handleUnmatched(request, reply)
    else done()
  })
  app.addHook('onResponse', (request, _reply, done) => {
    discardRest(request)
    done()
  })
  app.setNotFoundHandler(handleUnmatched)
  app.setErrorHandler<FastifyError>(makeErrorHandler(deps))

  if (deps.corsOrigins.length > 0) await registerCors(app, deps.corsOrigins)
  for (const register of deps.scopes) await app.register(async (scope) => register(scope))
  if (deps.servesApi) await app.register(async (scope) => registerV1(scope, deps))
  await app.ready()
  return app
}

/** Limits the connections of clients. In the main process of several, HTTP processes do that. */
function openConnectionLimit<C extends Content>(app: FastifyInstance, deps: HttpDeps<C>) {
  if (deps.isBehindProcesses === true) return { isSurplus: () => false }
  const connections = limitConnections(app.server, deps.maxConnections)
  deps.metrics.gauge('assay_http_connections', 'Open client connections.', connections.countOpen)
  deps.metrics.gauge('assay_http_connections_refused', 'Connections beyond the limit.', connections.countRefused)
  return connections
}

/** Headers of every response. With its own certificate, the service tells browsers to use https from now on. */
function writeCommonHeaders(reply: FastifyReply, { region, tls }: Pick<HttpDeps, 'region' | 'tls'>): FastifyReply {
  reply.header(headers.region, region).header('X-Content-Type-Options', 'nosniff')
  return tls === undefined ? reply : reply.header('Strict-Transport-Security', 'max-age=31536000')
}

function openApp<C extends Content>(deps: HttpDeps<C>): FastifyInstance {
  const turns = makeTurns()
  const makeServer = (handler: RequestListener): Server =>
    deps.tls === undefined || deps.isBehindProcesses === true
      ? createHttpServer(serverOptions, handler)
      : createHttpsServer({ ...serverOptions, ...deps.tls }, handler)
  return fastify({
    // `observeResponses` writes one log line for each response instead.
    logger: false,
    trustProxy: deps.isBehindProcesses === true ? isFirstHop : deps.trustedProxies.length > 0 && deps.trustedProxies,
    genReqId: (request) => newTraceId(request.headers.traceparent as string | undefined),
    clientErrorHandler: makeClientErrorHandler(deps),
    // A path that cannot be decoded matches no route. Fastify runs no hook for it, so it is logged here.
    frameworkErrors(error, request, reply) {
      const { id: traceId, method } = request
      deps.log.info({ traceId, method, path: toPath(request), status: 404, reason: error.code }, 'request rejected')
      sendProblem(request, writeCommonHeaders(reply, deps), { kind: 'not-found' })
    },
    rewriteUrl: (request) => toServedUrl(request.url ?? '/'),
    routerOptions: { ignoreTrailingSlash: true, caseSensitive: false, maxParamLength: maxHeaderBytes },
    // While stopping, requests on open connections are still answered; the hook above closes the connections.
    return503OnClosing: false,
    schemaController: { compilersFactory: { buildValidator: () => refuseSchema, buildSerializer: () => refuseSchema } },
    forceCloseConnections: 'idle',
    // `serverFactory` makes the server; this option only tells Fastify the scheme of its address. The cast avoids the
    // overload of `fastify` that would expect an HTTPS server in every type.
    ...({ https: deps.isBehindProcesses === true ? undefined : deps.tls } as object),
    serverFactory(handler) {
      const server = makeServer(turns.limitRequests(handler))
      turns.watchConnections(server)
      return server
    },
  })
}

/** Trusts the HTTP process, which has taken the address of the client from its own connection and trusted proxies. */
const isFirstHop = (_address: string, hop: number) => hop === 0

/** Stands in for the schema compilers of Fastify, which no route uses and which take 70 ms of each start to load. */
function refuseSchema(): never {
  throw new Error('A route has a schema. Operations check their input themselves.')
}

const serverOptions = {
  keepAliveTimeout: 65_000,
  // `readBody` guards bodies: a time limit on the whole request would cut off long uploads.
  requestTimeout: 0,
  maxHeaderSize: maxHeaderBytes,
  headersTimeout: 15_000,
  // By default Node checks for late headers every 30 s, which would turn 15 s into up to 45 s.
  connectionsCheckingInterval: 1000,
  // `checkFraming` rejects a missing Host header instead, with a body that explains the reason.
  requireHostHeader: false,
}

/** Accepts an absolute URL in the request line, as proxies send it, and the reference without its trailing slash. */
function toServedUrl(url: string): string {
  if (url.startsWith('/v1/')) return url
  const path = /^https?:\/\/[^/?#]+(.*)$/i.exec(url)?.[1] ?? url
  const rooted = path.startsWith('/') ? path : `/${path}`
  return /^\/reference(?=$|\?)/i.test(rooted) ? `/reference/${rooted.slice('/reference'.length)}` : rooted
}

/** Writes one log line and one metric observation for each response. Neither contains headers, queries or bodies. */
function observeResponses<C extends Content>(app: FastifyInstance, deps: HttpDeps<C>) {
  app.decorateRequest('operationId', undefined)
  app.decorateRequest('isForwarded', false)
  app.addHook('onResponse', (request, reply, done) => {
    if (request.isForwarded) return done()
    const ms = reply.elapsedTime
    const accountId = request.caller?.accountId
    if (reply.statusCode >= 400 && accountId !== undefined) deps.countRejectedRequest(accountId, reply.statusCode)
    // Requests with a test key delay and fail on demand, so the metrics keep them apart from real operations.
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
      headers.result,
      headers.creditLimit,
      headers.creditRemaining,
      headers.retryAfter,
      headers.rateLimit,
      headers.rateRemaining,
      headers.rateReset,
      'ETag',
    ],
    maxAge: 600,
  }
  await app.register(cors, {
    // An OPTIONS request that is not a preflight gets 405 like any other unsupported method, not the plugin's 400.
    delegator: ({ headers }, done) =>
      done(null, { ...options, preflight: 'origin' in headers && 'access-control-request-method' in headers }),
  })
}
