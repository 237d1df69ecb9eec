import {
  type AssayError,
  BadRequest,
  NotFound,
  NotPermitted,
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
import type { HttpResponse } from './transport/transport.ts'

export function toMeta({ status, findHeader }: HttpResponse, attempts: number): Meta {
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

/** Seconds until the time in Retry-After, which HTTP allows to be a number of seconds or a date. */
export function findRetryAfter({ findHeader }: HttpResponse): number | undefined {
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

/** The error for a response whose status is not 2xx. */
export function toError(response: HttpResponse, attempts: number, url: string): AssayError {
  const { status } = response
  const { host } = new URL(url)
  const problem = findProblem(response.text)
  const meta = toMeta(response, attempts)
  const details = { meta, ...(problem && { problem }) }
  const retryAfterSeconds = findRetryAfter(response)
  const explanation = problem?.detail ?? problem?.title
  const advice =
    retryAfterSeconds === undefined ? 'Try again later.' : `Try again in ${Math.ceil(retryAfterSeconds)} s.`

  if (status === 401) {
    return new Unauthorized(
      `${host} does not accept this API key. Check that the key is complete, and neither revoked nor expired.`,
      details,
    )
  }
  if (status === 403 && problem !== undefined) {
    return new NotPermitted(explanation ?? 'This API key is not permitted to do this.', details)
  }
  if (status === 403) {
    return new OutOfCredits('No credits are left. Wait for the next period, or ask the operator for more.', details)
  }
  if (status === 429) {
    return new RateLimited(explanation ?? `The rate limit of this API key is reached. ${advice}`, {
      ...details,
      retryAfterSeconds,
    })
  }
  if (status === 503) {
    return new Overloaded(`${explanation ?? `${host} is overloaded.`} ${advice}`, { ...details, retryAfterSeconds })
  }
  if (status >= 500) {
    const trace = problem ? `If the error persists, give this trace id to the operator: ${problem.traceId}` : advice
    return new ServerError(`${explanation ?? `${host} failed with status ${status}.`} ${trace}`, details)
  }
  if (problem === undefined) {
    return new UnexpectedAnswer(
      `${host} answered with status ${status}, which is not a response of Assay. Check that baseUrl is the address of Assay.`,
      details,
    )
  }
  if (status === 422) {
    const errors = findFieldErrors(problem)
    const messages = Object.values(errors).flat().join(' ')
    return new ValidationFailed(messages === '' ? (explanation ?? 'A field is invalid.') : messages, {
      ...details,
      errors,
    })
  }
  if (status === 404) return new NotFound(`${explanation ?? 'Not found.'} Check that baseUrl is correct.`, details)
  if (status === 415) {
    return new UnsupportedMediaType(explanation ?? 'The service does not support this media type.', details)
  }
  return new BadRequest(explanation ?? `The service rejected the request with status ${status}.`, details)
}

/** The error for a response with status 2xx whose body is not what the operation returns. */
export const newUnexpectedAnswer = (response: HttpResponse, attempts: number, url: string) =>
  new UnexpectedAnswer(
    `${new URL(url).host} sent a response that is not from Assay. Check that baseUrl is the address of Assay.`,
    { meta: toMeta(response, attempts) },
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
