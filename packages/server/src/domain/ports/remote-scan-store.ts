import type { ScanKind } from '@assay/contract'
import type { ContentIdentity } from '../content/content.ts'
import type { FinalResult } from '../scans/scan.ts'
import type { JobSource } from './job-store.ts'

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
