import {
  headers,
  type ProblemDetails,
  type ProblemKind,
  problemKinds,
  type ValidationProblemDetails,
} from '@assay/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FieldErrors, Refusal } from '../domain/problem.ts'
import { toOrigin } from './origin.ts'

/** Problems that only the edge knows, beside the refusals of the domain. */
type EdgeProblem =
  | { kind: 'not-found'; detail?: string }
  | { kind: 'method-not-allowed'; allow: string[] }
  | { kind: 'header-too-large' }
  | { kind: 'internal' }

export type AnyProblem = Refusal | EdgeProblem

/** Does not compile while a kind is missing. */
export const statusOf: Record<AnyProblem['kind'], number> = {
  'malformed-request': 400,
  unauthenticated: 401,
  'out-of-credit': 403,
  'not-found': 404,
  'method-not-allowed': 405,
  'request-timeout': 408,
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
}

export function sendProblem(request: FastifyRequest, reply: FastifyReply, problem: AnyProblem): FastifyReply {
  reply.code(statusOf[problem.kind])
  // The specification gives these two no body; a client has all it needs in the status.
  if (problem.kind === 'unauthenticated') return reply.header('WWW-Authenticate', 'ApiKey').send()
  if (problem.kind === 'out-of-credit') return reply.send()
  if ('retryAfterSeconds' in problem) reply.header(headers.retryAfter, problem.retryAfterSeconds)
  if (problem.kind === 'method-not-allowed') reply.header('Allow', problem.allow.join(', '))
  const place = { origin: toOrigin(request), instance: toPath(request), traceId: request.id }
  return reply.type('application/problem+json').send(Buffer.from(JSON.stringify(toProblemDetails(problem, place))))
}

export type Described = Exclude<AnyProblem, { kind: 'unauthenticated' | 'out-of-credit' }>

export function toProblemDetails(
  problem: Described,
  place: { origin: string; instance: string; traceId: string },
): ProblemDetails | ValidationProblemDetails {
  const kind: ProblemKind = problem.kind
  return {
    type: `${place.origin}/problems/${kind}`,
    title: problemKinds[kind].title,
    status: statusOf[kind],
    detail: ('detail' in problem ? problem.detail : undefined) ?? toDetail(problem),
    instance: place.instance,
    traceId: place.traceId,
    ...('errors' in problem ? { errors: problem.errors } : {}),
  }
}

function toDetail(problem: Described): string {
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
  return count === 1 ? 'One field is not valid; see errors.' : `${count} things are not valid; see errors.`
}

/** As it is served, also when the request line held a whole address; without the query, which may hold anything. */
export function toPath({ url }: FastifyRequest): string {
  const end = url.search(/[?#]/)
  return end === -1 ? url : url.slice(0, end)
}
