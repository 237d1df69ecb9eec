import type { Rate } from '../accounts/account.ts'
import type { NewScan } from '../scans/scan.ts'
import type { NewJob } from './job-store.ts'

/**
 * A call to the gate: it counts a request, charges a scan, or both. A request whose body is still to be read is counted
 * first and charged in a second call.
 */
export type AdmissionCall = {
  /** Result of `toKeyDigest`. */
  keyDigest: string
  /** Whether to count a request in the rate window of the key. */
  countsRequest: boolean
  /**
   * Scan to charge one credit for and to record, both or neither. A test key pays nothing. The same id is never charged
   * twice.
   */
  scan?: NewScan
  /** Job of a pending scan, recorded together with the charge. */
  job?: NewJob
  /** The gate charges and records only one of all scans with the same idempotency key, operation and account. */
  idempotency?: Idempotency
  /** Setting that the verdict of the scan depends on: it is charged and recorded only if the account still has it. */
  flagsSexy?: boolean
  /** Restrictions that the use of the key was checked against: charged and recorded only if the key still has them. */
  restrictions?: string
  /** How long the call may wait for others that share its statement; without it, hardly at all. */
  mayWaitMs?: number
}

export type Idempotency = {
  operation: string
  key: string
  /** Hash of the request in hex: tells a repeat from another request with the same key. */
  fingerprint: string
}

/** The scan that was recorded first with an idempotency key. */
type Repeat = { scanId: string; fingerprint: string }

export type Caller = {
  /** Digest of the key that called; the scan is charged with it once the body is read. */
  keyDigest: string
  accountId: string
  /** Whether the key is a test key: no engine runs, and the gate charges nothing. */
  isTest: boolean
  /** Restrictions of the key, as `toRestrictionsText` writes them. */
  restrictions: string
  /** Whether a picture that is "sexy", and nothing worse, is a threat to this account. */
  flagsSexy: boolean
  rate: Rate
  creditLimit: number
  /** Credits after the debit of this call. */
  creditRemaining: number
  /** Requests left in the window after this one. */
  requestsRemaining: number
  resetsAt: Date
}

export type AdmissionAnswer =
  | { outcome: 'admitted'; caller: Caller }
  /** The key is missing, revoked or expired, or its account is suspended or expired. */
  | { outcome: 'unknown-key' }
  | { outcome: 'rate-limited'; caller: Caller; retryAfterSeconds: number }
  | { outcome: 'out-of-credit'; caller: Caller }
  /** The idempotency key was used before, perhaps for another request: nothing was charged or recorded. */
  | ({ outcome: 'repeated'; caller: Caller } & Repeat)
  /**
   * The setting that the verdict depends on or the restrictions of the key were changed: the request was counted,
   * nothing charged or recorded.
   */
  | { outcome: 'changed'; caller: Caller }

/** Rate limits and credits are exact over any number of processes and concurrent calls. */
export type AdmissionGate = { admit(call: AdmissionCall): Promise<AdmissionAnswer> }

export type IdempotencyStore = {
  /** Finds a repeat before any work is done. The gate decides: a concurrent call may still take the key. */
  findRepeat(accountId: string, operation: string, key: string): Promise<Repeat | undefined>
  /** Deletes keys of that age, and returns how many. */
  deleteIdempotencyKeys(ageMs: number): Promise<number>
}
