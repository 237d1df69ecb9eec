export type WebhookRequest = {
  url: string
  /** Headers beside those of every request. */
  headers: Record<string, string>
  body: Buffer
  /** The time limit for the whole attempt: name resolution, connection, request and response. */
  totalMs: number
}

export type WebhookResponse =
  /** The receiver sent a status. A response that was cut off after it counts too, because the body decides nothing. */
  | {
      status: number
      retryAfter: string | undefined
      beginning: Buffer
      /** False if the receiver has an address that only the operator of this service has opened. */
      isPublic: boolean
    }
  /** `reason` is a sentence. `fault` is set when this service failed, not the receiver. */
  | { status: null; reason: string; fault?: unknown }

export type WebhookSender = {
  /** Never throws for a fault of the receiver, and follows no redirect. */
  send(request: WebhookRequest): Promise<WebhookResponse>
  /** Returns all headers that a request with these headers would send. */
  toHeaders(headers: Record<string, string>): Record<string, string>
}
