import {
  type AssayError,
  BadRequest,
  NotFound,
  OutOfCredits,
  Overloaded,
  RateLimited,
  ServerError,
  Unauthorized,
  UnexpectedAnswer,
  UnsupportedMediaType,
  ValidationFailed,
} from './errors.ts'
import type { Meta, ProblemDetails } from './results.ts'
import type { Incoming } from './transport/transport.ts'

export function toMeta({ status, findHeader }: Incoming, attempts: number): Meta {
  const limit = findNumber(findHeader('x-api-credit-limit'))
  const remaining = findNumber(findHeader('x-api-credit-remaining'))
  const window = findHeader('x-rate-limit-limit')
  const requests = findNumber(findHeader('x-rate-limit-remaining'))
  const reset = findHeader('x-rate-limit-reset')
  const region = findHeader('x-assay-region')
  return {
    status,
    ...(limit !== undefined && remaining !== undefined && { credits: { limit, remaining } }),
    ...(window !== undefined &&
      requests !== undefined &&
      reset !== undefined && { rate: { window, remaining: requests, resetsAt: new Date(reset) } }),
    ...(region !== undefined && { region }),
    attempts,
  }
}

/** Seconds, or a date, as HTTP has it. */
export function findRetryAfter({ findHeader }: Incoming): number | undefined {
  const value = findHeader('retry-after')
  const seconds = findNumber(value) ?? (Date.parse(value ?? '') - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The error for an answer that is none of the expected ones. */
export function toError(incoming: Incoming, attempts: number, url: string): AssayError {
  const { status } = incoming
  const { host } = new URL(url)
  const problem = findProblem(incoming.text)
  const meta = toMeta(incoming, attempts)
  const details = { meta, ...(problem && { problem }) }
  const retryAfterSeconds = findRetryAfter(incoming)
  const said = problem?.detail ?? problem?.title
  const later = retryAfterSeconds === undefined ? 'Try again later.' : `Try again in ${Math.ceil(retryAfterSeconds)} s.`

  if (status === 401) {
    return new Unauthorized(`${host} does not accept this API key. Check that it is complete and in force.`, details)
  }
  if (status === 403) {
    return new OutOfCredits('No credits are left. Wait for the next period, or ask the operator for more.', details)
  }
  if (status === 429) {
    return new RateLimited(said ?? `Too many requests were made with this key. ${later}`, {
      ...details,
      retryAfterSeconds,
    })
  }
  if (status === 503) {
    return new Overloaded(`${said ?? `${host} has too much to do.`} ${later}`, { ...details, retryAfterSeconds })
  }
  if (status >= 500) {
    const trace = problem ? `When it lasts, give this to the operator: ${problem.traceId}` : 'Try again later.'
    return new ServerError(`${said ?? `${host} failed with status ${status}.`} ${trace}`, details)
  }
  if (problem === undefined) {
    return new UnexpectedAnswer(
      `${host} answered with status ${status}, but not as Assay does. Check that baseUrl is the address of Assay.`,
      details,
    )
  }
  if (status === 422) {
    const errors = findFieldErrors(problem)
    const all = Object.values(errors).flat().join(' ')
    return new ValidationFailed(all === '' ? (said ?? 'A field is not valid.') : all, { ...details, errors })
  }
  if (status === 404) return new NotFound(`${said ?? 'Not found.'} Check that baseUrl is right.`, details)
  if (status === 415) return new UnsupportedMediaType(said ?? 'The service does not take this media type.', details)
  return new BadRequest(said ?? `The service refused the request with status ${status}.`, details)
}

export const unexpected = (incoming: Incoming, attempts: number, url: string) =>
  new UnexpectedAnswer(
    `${new URL(url).host} answered with something that is not of Assay. Check that baseUrl is the address of Assay.`,
    { meta: toMeta(incoming, attempts) },
  )

function findProblem(text: string): ProblemDetails | undefined {
  const value = parseJson(text)
  const isProblem =
    typeof value === 'object' && value !== null && 'traceId' in value && typeof value.traceId === 'string'
  return isProblem ? (value as ProblemDetails) : undefined
}

function findFieldErrors(problem: ProblemDetails): Record<string, string[]> {
  const errors = 'errors' in problem ? problem.errors : undefined
  if (typeof errors !== 'object' || errors === null) return {}
  return Object.fromEntries(
    Object.entries(errors).map(([field, messages]) => [field, Array.isArray(messages) ? messages.map(String) : []]),
  )
}

const findNumber = (text: string | undefined) =>
  text === undefined || !/^\d+(\.\d+)?$/.test(text) ? undefined : Number(text)
