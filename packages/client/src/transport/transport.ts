import type { Content } from '../content.ts'

/** A request as a transport sends it, once. */
export type HttpRequest = {
  method: 'GET' | 'POST'
  url: string
  headers: Record<string, string>
  body?: string | Form
}

export type Form = {
  /** Text fields by name, sent before the content. */
  fields: Record<string, string>
  content: Content
  /** Called with the number of bytes of the content sent so far. */
  onSent(bytes: number): void
}

export type HttpResponse = {
  status: number
  findHeader(name: string): string | undefined
  text: string
}

/**
 * Sends a request without following redirects. Throws ConnectionFailed or an error of the content; after the signal
 * aborts it may throw anything.
 */
export type Transport = (request: HttpRequest, signal: AbortSignal) => Promise<HttpResponse>

/** Limit on a response body. Responses of Assay are much shorter. */
export const maxResponseBytes = 1024 * 1024
