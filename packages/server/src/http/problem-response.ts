import {
  headers,
  type ProblemDetails,
  type ProblemKind,
  problemKinds,
  type ValidationProblemDetails,
} from '@assay/contract'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { StorageUnavailable } from '../domain/ports/content-store.ts'
import { type FieldErrors, Problem, type Refusal } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'
import { isUnroutable, toOrigin, toPath } from './request.ts'

/** Problems that arise in HTTP itself, in addition to the refusals of the domain. */
type EdgeProblem = { kind: 'method-not-allowed'; allow: string[] } | { kind: 'header-too-large' } | { kind: 'internal' }

export type AnyProblem = Refusal | EdgeProblem

/** The status of each kind of problem. The type makes the compiler report a kind without a status. */
export const statusOf: Record<AnyProblem['kind'], number> = {
  'malformed-request': 400,
  unauthenticated: 401,
  'out-of-credit': 403,
  'key-restricted': 403,
  'signed-out': 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  'request-timeout': 408,
  conflict: 409,
  'content-too-large': 413,
  'unsupported-media-type': 415,
  validation: 422,
  'rate-limited': 429,
  'header-too-large': 431,
  'engine-unavailable': 500,
  internal: 500,
  'outcome-unknown': 500,
  overloaded: 503,
  unavailable: 503,
  'storage-full': 503,
  degraded: 503,
}

/** Seconds in Retry-After when content cannot be stored. The store has retried for some seconds by then. */
const storageRetrySeconds = 10

type ErrorHandlerDeps = {
  log: Logger
  metrics: { countFailure(): void }
  /** True for errors that mean that the database cannot be reached, as opposed to faults of the service. */
  isOutage(error: unknown): boolean
  /** A sentence for errors of changes that the state of the installation forbids. */
  findConflict(error: unknown): string | undefined
}

/** Turns every thrown error of a request into a response. No other code does. */
export function makeErrorHandler(deps: ErrorHandlerDeps) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
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
      deps.log.warn({ traceId: request.id, err: error }, 'content could not be stored')
      const detail = 'The content cannot be stored at the moment. Nothing was charged.'
      return sendProblem(request, reply, { kind: 'overloaded', retryAfterSeconds: storageRetrySeconds, detail })
    }
    // Only reads and work before a charge end here: admission turns an outage during a charge into a Problem itself.
    if (deps.isOutage(error)) return sendProblem(request, reply, { kind: 'unavailable', retryAfterSeconds: 5 })
    const conflict = deps.findConflict(error)
    if (conflict !== undefined) return sendProblem(request, reply, { kind: 'conflict', detail: conflict })
    deps.metrics.countFailure()
    deps.log.error({ traceId: request.id, err: error }, 'request failed')
    return sendProblem(request, reply, { kind: 'internal' })
  }
}

/** Collects every route, and returns the handler for requests without one: 405 for a known path, else 404. */
export function makeUnmatchedHandler(app: FastifyInstance, { servesApi }: { servesApi: boolean }) {
  const routes: { methods: string[]; pattern: RegExp }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    // The CORS plugin registers `*` for preflight requests; it is not a path of the interface.
    if (url === '*') return
    const path = url.replace(/\/$/, '').replaceAll(/:[a-z]+/g, '[^/]+')
    routes.push({ methods: [method].flat(), pattern: new RegExp(`^${path}/?$`, 'i') })
  })

  return (request: FastifyRequest, reply: FastifyReply) => {
    const path = toPath(request)
    if (servesApi && path === '/' && wantsPage(request)) return reply.redirect('/console')
    const matching = isUnroutable(path) ? [] : routes.filter(({ pattern }) => pattern.test(path))
    const allow = [...new Set(matching.flatMap(({ methods }) => methods))].sort()
    const problem = allow.length === 0 ? toNotFound(servesApi) : ({ kind: 'method-not-allowed', allow } as const)
    return sendProblem(request, reply, problem)
  }
}

/** Tells whether a person opens the address in a browser. */
const wantsPage = ({ method, headers: { accept = '' } }: FastifyRequest) =>
  method === 'GET' && accept.includes('text/html')

function toNotFound(servesApi: boolean) {
  if (servesApi) return { kind: 'not-found' } as const
  const detail =
    'This node is a worker and serves only /livez and /readyz. Send the request to a node that serves the API.'
  return { kind: 'not-found', detail } as const
}

export function sendProblem(request: FastifyRequest, reply: FastifyReply, problem: AnyProblem): FastifyReply {
  reply.code(statusOf[problem.kind])
  // The interface specifies no body for these two: the status says everything.
  if (problem.kind === 'unauthenticated') return reply.header('WWW-Authenticate', 'ApiKey').send()
  if (problem.kind === 'out-of-credit') return reply.send()
  if ('retryAfterSeconds' in problem) reply.header(headers.retryAfter, problem.retryAfterSeconds)
  // The interface specifies these headers for requests that are not limited.
  if (problem.kind === 'rate-limited') {
    for (const name of [headers.rateLimit, headers.rateRemaining, headers.rateReset]) reply.removeHeader(name)
  }
  if (problem.kind === 'method-not-allowed') reply.header('Allow', problem.allow.join(', '))
  const context = { origin: toOrigin(request), instance: toPath(request), traceId: request.id }
  return reply.type('application/problem+json').send(Buffer.from(JSON.stringify(toProblemDetails(problem, context))))
}

export type ProblemWithBody = Exclude<AnyProblem, { kind: 'unauthenticated' | 'out-of-credit' }>

export function toProblemDetails(
  problem: ProblemWithBody,
  context: { origin: string; instance: string; traceId: string },
): ProblemDetails | ValidationProblemDetails {
  const kind: ProblemKind = problem.kind
  return {
    type: `${context.origin}/problems/${kind}`,
    title: problemKinds[kind].title,
    status: statusOf[kind],
    detail: ('detail' in problem ? problem.detail : undefined) ?? toDetail(problem),
    instance: context.instance,
    traceId: context.traceId,
    ...('errors' in problem ? { errors: problem.errors } : {}),
  }
}

function toDetail(problem: ProblemWithBody): string {
  switch (problem.kind) {
    case 'validation':
      return toSummary(problem.errors)
    case 'rate-limited':
      return `The rate limit of this key is reached. Try again in ${problem.retryAfterSeconds} s.`
    case 'method-not-allowed':
      return `This path takes ${problem.allow.join(', ')}.`
    default:
      return problemKinds[problem.kind].meaning
  }
}

function toSummary(errors: FieldErrors): string {
  const count = Object.values(errors).flat().length
  return count === 1 ? 'One field is not valid; see errors.' : `The request has ${count} errors; see errors.`
}
