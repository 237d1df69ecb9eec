import type { Rate } from '../accounts/account.ts'
import type { NewScan } from '../scans/scan.ts'
import type { NewJob } from './job-store.ts'

/** One question at the gate. Both halves of a call in one, or the request first and the scan when its body is read. */
export type Ask = {
  /** As `toKeyDigest` makes it. */
  keyDigest: string
  /** Count this against the rate window of the key. */
  countsRequest: boolean
  /** Charge one credit, unless the key is for tests, and record this, or do neither. Asking again with the same id never charges twice. */
  scan?: NewScan
  /** With a scan that is pending: what a worker needs for it. Recorded with the charge, or neither. */
  job?: NewJob
  /** With a scan: of all that carry the same key of the same account and operation, one is charged and recorded. */
  idempotency?: Idempotency
  /** With a scan whose verdict rests on this setting: charged and recorded only if the account still has it so. */
  flagsSexy?: boolean
}

export type Idempotency = {
  operation: string
  key: string
  /** Of what was asked, in hex: tells a repeat from another request under the same key. */
  fingerprint: string
}

/** The scan that was recorded first under an idempotency key. */
type Repeat = { scanId: string; fingerprint: string }

export type Caller = {
  /** Of the key that called; the scan is asked for with it when its body is read. */
  keyDigest: string
  accountId: string
  /** The key is one for tests: no engine is asked, and the gate charges nothing. */
  isTest: boolean
  /** A picture that is sexy, and no more than that, is a threat to this account. */
  flagsSexy: boolean
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
  /** The key was used before, maybe for something else: nothing was charged or recorded. */
  | ({ outcome: 'repeated'; caller: Caller } & Repeat)
  /** The account has changed what the verdict rests on: nothing was charged or recorded, the request was counted. */
  | { outcome: 'changed'; caller: Caller }

/** Exact over any number of processes: of any number of asks at once, just as many pass as are allowed. */
export type AdmissionGate = { ask(ask: Ask): Promise<Answer> }

export type IdempotencyStore = {
  /** For asking before any work is done; the gate has the last word. */
  findRepeat(accountId: string, operation: string, key: string): Promise<Repeat | undefined>
  /** Forgets keys that were first used before that time; says how many. */
  deleteIdempotency(before: Date): Promise<number>
}
