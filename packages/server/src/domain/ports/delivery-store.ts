export type DeliveryState =
  /** To be tried, now or later. */
  | 'pending'
  | 'delivered'
  /** Tried as often as the schedule says. */
  | 'dead'
  /** The receiver answered 410. */
  | 'stopped'

export type Attempt = {
  at: Date
  /** Null without an answer. */
  status: number | null
  durationMs: number
  /** The beginning of the answer, at most 1 KB; or what went wrong. */
  answer: string
}

export type Delivery = {
  id: string
  scanId: string
  accountId: string
  url: string
  state: DeliveryState
  attempts: number
  createdAt: Date
  /** Null when there is nothing more to come, or not before its endpoint is resumed. */
  nextAt: Date | null
  lastStatus: number | null
}

export type ClaimedDelivery = {
  id: string
  /** Only the newest claim can complete. */
  token: string
  accountId: string
  url: string
  /** Exactly these bytes, every time. */
  body: string
  /** Attempts before this one. */
  attempts: number
  /** The account's, and the one before while it still signs. */
  secrets: string[]
}

export type Endpoint = {
  accountId: string
  url: string
  failingSince: Date | null
  lastSuccessAt: Date | null
  pausedAt: Date | null
  /** Deliveries that wait for it. */
  waiting: number
}

export type NextDeliveryState = { state: 'delivered' | 'dead' | 'stopped' } | { state: 'pending'; nextAt: Date }

export type DeliveryStore = {
  /**
   * Takes deliveries that are due, at most `perHost` of one receiver at a time over all processes: one that is slow
   * delays no other. None for endpoints that are paused.
   */
  claim(options: { limit: number; perHost: number; leaseMs: number }): Promise<ClaimedDelivery[]>
  /**
   * Logs the attempt and what comes of it, and pauses the endpoint that has only failed for `pauseAfterMs`. False when
   * somebody else has the delivery by now.
   */
  recordAttempt(
    claimed: Pick<ClaimedDelivery, 'id' | 'token'>,
    attempt: Attempt,
    outcome: NextDeliveryState,
    pauseAfterMs: number,
  ): Promise<boolean>
  /**
   * When the next one is due; undefined when none is waiting. That may be past: a receiver has as many as it may, and
   * more are waiting.
   */
  findNextDue(): Promise<Date | undefined>
  /** Newest first, from before that one. */
  listDeliveries(filter: {
    accountId?: string
    state?: DeliveryState
    scanId?: string
    before?: string
    limit: number
  }): Promise<Delivery[]>
  findDelivery(id: string): Promise<(Delivery & { body: string; log: Attempt[] }) | undefined>
  /** Makes them due at once, whatever became of them; says how many. */
  replay(which: { id: string } | { failedSince: Date; accountId?: string }): Promise<number>
  listEndpoints(filter: { accountId?: string }): Promise<Endpoint[]>
  /** False when no such endpoint is paused. */
  resumeEndpoint(accountId: string, url: string): Promise<boolean>
  /** Forgets deliveries that were made before that time and are not to be tried any more; says how many. */
  deleteOld(before: Date): Promise<number>
  /** Without what is put aside for a paused endpoint. */
  countDeliveries(): Promise<{ waiting: number; oldestDueAt: Date | undefined }>
}
