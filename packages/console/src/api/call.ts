import {
  type AdminRouteName,
  adminPath,
  adminRoutes,
  csrfHeader,
  type Route,
  type Session,
} from '@assay/contract/admin'
import type { Static, TSchema } from 'typebox'
import { parseMarked } from './marked-json.ts'

type SchemaType<N extends AdminRouteName, K extends 'query' | 'body' | 'answer'> = (typeof adminRoutes)[N] extends {
  [key in K]: infer S extends TSchema
}
  ? Static<S>
  : undefined

export type Answer<N extends AdminRouteName> = SchemaType<N, 'answer'>
export type Input<N extends AdminRouteName> = {
  params?: Record<string, string>
  query?: SchemaType<N, 'query'>
  body?: SchemaType<N, 'body'>
}

/** An error response of the service, or a failed connection with status 0. */
export class ApiError extends Error {
  readonly status: number
  readonly fields: Record<string, string[]>
  readonly traceId: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly receivedAt = Date.now()

  constructor(
    message: string,
    details: {
      status: number
      fields?: Record<string, string[]>
      traceId?: string | undefined
      retryAfterSeconds?: number | undefined
    },
  ) {
    super(message)
    this.status = details.status
    this.fields = details.fields ?? {}
    this.traceId = details.traceId
    this.retryAfterSeconds = details.retryAfterSeconds
  }
}

export const unreachableMessage = 'Cannot reach the service. Check that it is running.'

let csrfToken = ''

/** Calls a route of the admin API by its name in the contract. */
export async function call<N extends AdminRouteName>(
  name: N,
  input: Input<N> = {},
  signal?: AbortSignal,
): Promise<Answer<N>> {
  const route: Route = adminRoutes[name]
  const response = await send(toUrl(name, input), {
    method: route.method,
    headers: {
      ...(route.method === 'GET' ? {} : { [csrfHeader]: csrfToken }),
      ...(input.body === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error) => {
    // At routes for anyone, 401 means wrong credentials.
    if (!(error instanceof ApiError) || error.status !== 401 || route.access === 'anyone') throw error
    throw new ApiError(route.method === 'GET' ? sessionEnded : changeLost, { status: 401 })
  })
  if (response.status === 204) return undefined as Answer<N>
  const answer = parseMarked(await response.text())
  if (name === 'getSession') csrfToken = (answer as Session).csrf_token
  return answer as Answer<N>
}

/** Uploads a file as the body of a route. */
export async function putFile(
  name: 'uploadSignatures',
  params: Record<string, string>,
  file: Blob,
): Promise<Answer<'uploadSignatures'>> {
  const headers = { [csrfHeader]: csrfToken, 'Content-Type': 'application/octet-stream' }
  const response = await send(toUrl(name, { params }), { method: 'PUT', headers, body: file })
  return parseMarked(await response.text()) as Answer<'uploadSignatures'>
}

export const getCsrfToken = () => csrfToken

/** Address of a route, also for links such as the CSV export. */
export function toUrl<N extends AdminRouteName>(name: N, { params = {}, query }: Input<N> = {}): string {
  const path = adminRoutes[name].path.replaceAll(/\{(\w+)\}/g, (_all, param: string) =>
    encodeURIComponent(params[param] ?? ''),
  )
  const parameters = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(parameters as [string, string][]).toString()
  return `${adminPath}${path}${search === '' ? '' : `?${search}`}`
}

async function send(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, { credentials: 'same-origin', ...init }).catch((error: Error) => {
    if (error.name === 'AbortError') throw error
    throw new ApiError(unreachableMessage, { status: 0 })
  })
  if (response.ok) return response
  throw toApiError(response.status, await response.text(), response.headers.get('Retry-After'))
}

type ProblemBody = { detail?: string; title: string; errors?: Record<string, string[]>; traceId?: string }

/** Reads the problem details of a response. Some responses, such as 403 without credits, have no body. */
export function toApiError(status: number, text: string, retryAfter: string | null): ApiError {
  const retryAfterSeconds = retryAfter === null ? undefined : Number(retryAfter)
  try {
    const { detail, title, errors, traceId } = parseMarked(text) as ProblemBody
    const details = { status, traceId, retryAfterSeconds, ...(errors === undefined ? {} : { fields: errors }) }
    return new ApiError(joinFieldErrors(errors) ?? detail ?? title, details)
  } catch {
    return new ApiError(statusMessages[status] ?? `The service answered with status ${status}.`, {
      status,
      retryAfterSeconds,
    })
  }
}

/** Joins the messages of all fields, which say more than the summary in `detail`. */
function joinFieldErrors(errors: Record<string, string[]> | undefined): string | undefined {
  const messages = Object.entries(errors ?? {}).map(([field, lines]) => {
    const text = lines.join(' ')
    return field === '' || text.startsWith(field) ? text : `${field}: ${text}`
  })
  return messages.length === 0 ? undefined : messages.join(' ')
}

const sessionEnded = 'Your session has ended. Sign in again.'
const changeLost = 'Your session had ended, so nothing was changed. Try again.'

const statusMessages: Record<number, string> = {
  401: sessionEnded,
  403: 'No credits are left in this period.',
}
