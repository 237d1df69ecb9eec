import type { ScanKind } from '@assay/contract'
import type { ContentIdentity } from '../content/content.ts'
import type { FinalResult, Scan } from '../scans/scan.ts'

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

/** Options that a worker needs for the scan, beside the content. */
export type RemoteScanOptions = {
  kind: ScanKind
  contentName: string | null
  flagsSexy: boolean
  /** Account of the caller, whose verdicts the worker remembers and whose hosts it may download from. */
  accountId: string | null
  /** Size and hashes of the content, null for content that the worker downloads. */
  identity: ContentIdentity | null
}

export type NewRemoteScan = {
  id: string
  /** Queue of processes that have the engine and can read the content; see `toQueueName`. */
  queue: string
  source: JobSource
  options: RemoteScanOptions
  /** How long the row lives: the caller waits no longer. */
  ttlMs: number
}

/** Only the newest lease of a remote scan can complete it. */
export type RemoteScanLease = { id: string; token: string }

export type ClaimedRemoteScan = { lease: RemoteScanLease; source: JobSource; options: RemoteScanOptions }

/** `busy`: the engines are overloaded. `down`: they did not answer. */
export type RemoteScanFailure = 'busy' | 'down'

export type RemoteScanCompletion = { result: FinalResult } | { failure: RemoteScanFailure }

export type RemoteScanState =
  /** The result as another process wrote it, which the caller must check. */
  | { state: 'done'; result: unknown }
  | { state: 'failed'; failure: RemoteScanFailure }
  /** `attempts` counts the claims. `freeMs` is the time since a worker last held a lease; below zero while one does. */
  | { state: 'open'; attempts: number; freeMs: number }
  | { state: 'missing' }

/** Synchronous scans that a node hands to a worker. The rows are lost when the database crashes. */
export type RemoteScanStore = {
  add(remoteScan: NewRemoteScan): Promise<void>
  /** Returns the state. A finished remote scan is deleted and returned once. */
  take(id: string): Promise<RemoteScanState>
  remove(id: string): Promise<void>
  /** Claims remote scans that wait, or whose lease has run out, from the queues of this process, the oldest first. */
  claim(limit: number, leaseMs: number): Promise<ClaimedRemoteScan[]>
  /**
   * Extends leases, and returns those that are still valid: another worker may have the scan, or its caller has left.
   */
  extend(leases: RemoteScanLease[], leaseMs: number): Promise<RemoteScanLease[]>
  /** Returns false, and changes nothing, when the lease is not valid any more. */
  complete(lease: RemoteScanLease, completion: RemoteScanCompletion): Promise<boolean>
  /** Returns the remote scan to its queue without counting the attempt. */
  release(lease: RemoteScanLease): Promise<void>
  /** Deletes expired remote scans, and returns where their content is. */
  deleteExpired(): Promise<JobSource[]>
  /** Lists those of the given keys of the content store that a remote scan still needs. */
  listNeeded(keys: string[]): Promise<string[]>
}

/** Attempts after which a remote scan fails, so that content that crashes workers does not crash all of them. */
export const maxRemoteScanAttempts = 3

/**
 * `jobs`, `remote-scans`: there is work to claim. `completed`: the scans and remote scans with these ids have ended.
 * `signatures`: the operator's signature files have changed. `hash-lists`: lists of known hashes, or entries of the
 * allow and block lists, have changed. `sources`: the update of a source of signatures is due.
 */
export type Topic = 'jobs' | 'remote-scans' | 'completed' | 'signatures' | 'hash-lists' | 'sources'

/**
 * Messages between processes, so that they need not poll all the time. A message may be lost, so receivers still poll
 * at intervals, and more often while `isListening` is false.
 */
export type Notifications = {
  send(topic: Topic, id?: string): void
  /** `receive` gets the ids that were sent, if any. */
  on(topic: Topic, receive: (ids: string[]) => void): void
  isListening(): boolean
}
