export type WebhookRequest = {
  url: string
  /** Beside those that every request of ours has. */
  headers: Record<string, string>
  body: Buffer
  /** For the attempt as a whole: name, connection, request and answer. */
  totalMs: number
}

export type WebhookResponse =
  /** A status came. What follows it decides nothing, so an answer that was cut off is one too. */
  | { status: number; retryAfter: string | undefined; beginning: Buffer }
  /** `reason` is a sentence; `fault` is there when it was not the receiver's but ours. */
  | { status: null; reason: string; fault?: unknown }

export type WebhookSender = {
  /** Never throws for what a receiver does, and follows no redirect. */
  send(request: WebhookRequest): Promise<WebhookResponse>
  /** All headers of a request with these. */
  toHeaders(headers: Record<string, string>): Record<string, string>
}
