import type { Rate } from '../accounts/rate.ts'
import type { NewScan } from '../scans/scan.ts'

/** One question at the gate. Both halves of a call in one, or the request first and the scan when its body is read. */
export type Ask = {
  /** As `toKeyDigest` makes it. */
  keyDigest: string
  /** Count this against the rate window of the key. */
  takesRequest: boolean
  /** Charge one credit and record this, or do neither. Asking again with the same id never charges twice. */
  scan?: NewScan
}

export type Caller = {
  /** Of the key that called; the scan is asked for with it when its body is read. */
  keyDigest: string
  accountId: string
  rate: Rate
  creditLimit: number
  /** After this ask's own debit. */
  creditRemaining: number
  /** Requests left in the window, this one taken. */
  requestsRemaining: number
  resetsAt: Date
}

export type Answer =
  | { outcome: 'admitted'; caller: Caller }
  /** Missing, revoked or expired key; suspended or expired account. */
  | { outcome: 'unknown-key' }
  | { outcome: 'rate-limited'; caller: Caller; retryAfterSeconds: number }
  | { outcome: 'out-of-credit'; caller: Caller }

/** Exact over any number of processes: of any number of asks at once, just as many pass as are allowed. */
export type AdmissionGate = { ask(ask: Ask): Promise<Answer> }
