import type { Scan } from '../scans/scan.ts'

/** Location of the content of a background scan until its verdict. */
export type JobSource =
  /** Small content, encrypted, in the row of the job. */
  | { at: 'row'; sealed: Buffer }
  /** Encrypted content in the content store, under this key; the key that decrypts it is sealed in the row. */
  | { at: 'storage'; key: string; sealedKey: Buffer }
  /** Content that the worker downloads. */
  | { at: 'url'; url: string }

/** A job of a test key has no content, only the name of the test case that decides its verdict. */
type TestSource = { at: 'test'; testCase: string }

export type NewJob = {
  /** Queue of processes that have the engine and can read the content; see `toQueueName`. */
  queue: string
  source: JobSource | TestSource
  callbackUrl: string | null
  /** Time before which no worker may claim the job. */
  holdMs?: number
}

/** Only the newest lease of a job can complete it. */
export type Lease = { scanId: string; token: string }

export type ClaimedJob = Omit<NewJob, 'queue' | 'holdMs'> & {
  lease: Lease
  accountId: string
  flagsSexy: boolean
  scan: Scan
  /** Number of this attempt, from 1 on. */
  attempt: number
}

export type Completion = {
  scan: Scan
  /** Whether Assay failed, so that the credit is refunded. A job is refunded at most once. */
  refunds: boolean
  /** Body of the webhook, for a job with a callback URL. */
  deliveryBody: string | undefined
}

export type JobStore = {
  /**
   * Claims jobs that wait, or whose lease has run out, from the queues of this process. Accounts take turns, so that
   * many jobs of one account do not delay another's.
   */
  claim(limit: number, leaseMs: number): Promise<ClaimedJob[]>
  /** Claims jobs of any queue that have waited for that time without being claimed. */
  claimAbandoned(ageMs: number, limit: number, leaseMs: number): Promise<ClaimedJob[]>
  /** Extends leases, and returns those that are still valid. */
  extend(leases: Lease[], leaseMs: number): Promise<Lease[]>
  /**
   * Records verdict, refund and webhook delivery, and deletes the job, in one transaction. Returns false, and changes
   * nothing, when another worker has claimed the job since.
   */
  complete(lease: Lease, completion: Completion): Promise<boolean>
  /** Returns the job to its queue after a pause. The attempt is counted only with `countsAttempt`. */
  release(lease: Lease, pause: { ms: number; countsAttempt: boolean }): Promise<void>
  /** Exact up to 10,000 waiting jobs, and an estimate beyond. */
  countJobs(): Promise<{ waiting: number; running: number; oldestSeconds: number }>
  /** Lists those of the given keys of the content store that a job still needs. */
  listNeeded(keys: string[]): Promise<string[]>
}
