export type DeliveryState =
  /** An attempt is due now or later. */
  | 'pending'
  | 'delivered'
  /** All attempts of the schedule failed. */
  | 'dead'
  /** The receiver answered 410. */
  | 'stopped'

/** The response to an attempt, or the reason why there is none. */
export type Attempt = {
  /** HTTP status, null without a response. */
  status: number | null
  durationMs: number
  /** The beginning of the response, at most 1 KB, or the reason why there is none. */
  answer: string
}

/** An attempt in the log of a delivery, with the time at which it began. */
export type LoggedAttempt = Attempt & { at: Date }

export type Delivery = {
  id: string
  scanId: string
  accountId: string
  url: string
  state: DeliveryState
  attempts: number
  createdAt: Date
  /** Time of the next attempt; null when none follows, or none before the endpoint is resumed. */
  nextAt: Date | null
  lastStatus: number | null
}

export type ClaimedDelivery = {
  id: string
  /** Token of the lease: only the newest claim can record an attempt. */
  token: string
  accountId: string
  url: string
  /** The body, sent unchanged in every attempt. */
  body: string
  /** Attempts before this one. */
  attempts: number
  /** The secret of the account, and the previous one until it expires. Empty when they cannot be opened. */
  secrets: string[]
}

export type Endpoint = {
  accountId: string
  url: string
  failingSince: Date | null
  lastSuccessAt: Date | null
  pausedAt: Date | null
  /** Number of deliveries that wait for this endpoint. */
  waiting: number
}

export type NextDeliveryState = { state: 'delivered' | 'dead' | 'stopped' } | { state: 'pending'; pauseMs: number }

export type DeliveriesSince = {
  until: string
  deliveries: (Pick<Delivery, 'id' | 'scanId' | 'url' | 'createdAt'> & { body: string })[]
}

export type DeliveryStore = {
  /**
   * Claims deliveries that are due, at most `perHost` of one host at a time over all processes, so that a slow host
   * delays no other. Skips paused endpoints.
   */
  claim(options: { limit: number; perHost: number; leaseMs: number }): Promise<ClaimedDelivery[]>
  /**
   * Records an attempt that has just ended and the next state, and pauses an endpoint that has only failed for
   * `pauseAfterMs`. Returns false when another worker has claimed the delivery since.
   */
  recordAttempt(
    claimed: Pick<ClaimedDelivery, 'id' | 'token'>,
    attempt: Attempt,
    next: NextDeliveryState,
    pauseAfterMs: number,
  ): Promise<boolean>
  /**
   * Milliseconds until the next delivery is due; undefined when none is waiting. Zero or less when a host has as many
   * deliveries in flight as it may have.
   */
  findNextDueMs(): Promise<number | undefined>
  /** Newest first, beginning after the delivery `before`. */
  listDeliveries(filter: {
    accountId?: string
    state?: DeliveryState
    scanId?: string
    before?: string
    limit: number
  }): Promise<Delivery[]>
  /**
   * Deliveries of live or of test scans that were made after `since`, oldest first, and the `since` that follows them.
   * Without `since` there are none yet. Deliveries of the last five seconds come later: they may still commit in another order.
   */
  listSince(filter: { accountId: string; isTest: boolean; since: string | undefined }): Promise<DeliveriesSince>
  findDelivery(id: string): Promise<(Delivery & { body: string; log: LoggedAttempt[] }) | undefined>
  /** Makes deliveries due at once, whatever their state, and returns how many. */
  replay(which: { ids: string[] } | { failedSince: Date; accountId?: string }): Promise<number>
  listEndpoints(filter: { accountId?: string }): Promise<Endpoint[]>
  /** Returns false when no such endpoint is paused. */
  resumeEndpoint(accountId: string, url: string): Promise<boolean>
  /** Deletes deliveries of that age that wait for no attempt, and returns how many. */
  deleteOld(ageMs: number): Promise<number>
  /** Counts waiting deliveries, except those of paused endpoints. `lateSeconds`: how long the oldest has been due. */
  countDeliveries(): Promise<{ waiting: number; lateSeconds: number }>
}

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
