import {
  type AdminRouteName,
  adminPath,
  adminRoutes,
  csrfHeader,
  type Route,
  type Session,
} from '@assay/contract/admin'
import type { Static, TSchema } from 'typebox'

type Of<N extends AdminRouteName, K extends 'query' | 'body' | 'answer'> = (typeof adminRoutes)[N] extends {
  [key in K]: infer S extends TSchema
}
  ? Static<S>
  : undefined

export type Answer<N extends AdminRouteName> = Of<N, 'answer'>
export type Input<N extends AdminRouteName> = {
  params?: Record<string, string>
  query?: Of<N, 'query'>
  body?: Of<N, 'body'>
}

/** What the service said no to, with all that helps to find out why. */
export class ApiError extends Error {
  readonly status: number
  readonly fields: Record<string, string[]>
  readonly traceId: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(
    message: string,
    about: {
      status: number
      fields?: Record<string, string[]>
      traceId?: string | undefined
      retryAfterSeconds?: number | undefined
    },
  ) {
    super(message)
    this.status = about.status
    this.fields = about.fields ?? {}
    this.traceId = about.traceId
    this.retryAfterSeconds = about.retryAfterSeconds
  }
}

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
  })
  if (response.status === 204) return undefined as Answer<N>
  const answer = await response.json()
  if (name === 'getSession') csrfToken = (answer as Session).csrf_token
  return answer as Answer<N>
}

/** For what is no JSON: a file to be sent. */
export async function putFile(
  name: 'uploadSignatures',
  params: Record<string, string>,
  file: Blob,
): Promise<Answer<'uploadSignatures'>> {
  const headers = { [csrfHeader]: csrfToken, 'Content-Type': 'application/octet-stream' }
  return (await send(toUrl(name, { params }), { method: 'PUT', headers, body: file })).json()
}

export const getCsrfToken = () => csrfToken

/** Also for links, such as that of the CSV file. */
export function toUrl<N extends AdminRouteName>(name: N, { params = {}, query }: Input<N> = {}): string {
  const path = adminRoutes[name].path.replaceAll(/\{(\w+)\}/g, (_all, param: string) =>
    encodeURIComponent(params[param] ?? ''),
  )
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given as [string, string][]).toString()
  return `${adminPath}${path}${search === '' ? '' : `?${search}`}`
}

async function send(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, { credentials: 'same-origin', ...init }).catch((error: Error) => {
    if (error.name === 'AbortError') throw error
    throw new ApiError('The service does not answer. Is it running?', { status: 0 })
  })
  if (response.ok) return response
  throw toApiError(response.status, await response.text(), response.headers.get('Retry-After'))
}

/** Reads a ProblemDetails; some answers, such as 403 without credits, have no body. */
export function toApiError(status: number, text: string, retryAfter: string | null): ApiError {
  const retryAfterSeconds = retryAfter === null ? undefined : Number(retryAfter)
  try {
    const { detail, title, errors, traceId } = JSON.parse(text)
    return new ApiError(toSentences(errors) ?? detail ?? title, { status, fields: errors, traceId, retryAfterSeconds })
  } catch {
    return new ApiError(wordless[status] ?? `The service answered ${status}.`, { status, retryAfterSeconds })
  }
}

/** What is wrong with each field says more than that something is. */
function toSentences(errors: Record<string, string[]> | undefined): string | undefined {
  const sentences = Object.entries(errors ?? {}).map(([field, said]) => {
    const words = said.join(' ')
    return field === '' || words.startsWith(field) ? words : `${field}: ${words}`
  })
  return sentences.length === 0 ? undefined : sentences.join(' ')
}

const wordless: Record<number, string> = {
  401: 'The key of the console is not good any more. Sign in again.',
  403: 'There are no credits left in this period.',
}
