import type { ScanKind } from '@assay/contract'
import type { Content } from '../content/content.ts'
import type { FinalResult } from '../scans/scan.ts'
import type { JobSource } from './job-store.ts'

/** What a node must know to do it, beside the content. */
export type RemoteScanOptions = {
  kind: ScanKind
  contentName: string | null
  flagsSexy: boolean
  /** Of whoever asked; for content that is yet to be fetched. */
  accountId: string | null
  /** Of content that is there. */
  known: Pick<Content, 'bytes' | 'sha1' | 'sha256'> | null
}

export type NewRemoteScan = {
  id: string
  /** See queues.ts. */
  queue: string
  source: JobSource
  options: RemoteScanOptions
  /** How long somebody waits for it. */
  ttlMs: number
}

/** Whoever claimed it last. Only the newest lease can end it. */
export type RemoteScanLease = { id: string; token: string }

export type ClaimedRemoteScan = { lease: RemoteScanLease; source: JobSource; options: RemoteScanOptions }

/** `busy`: the engines have too much to do. `down`: they did not answer. */
export type RemoteScanFailure = 'busy' | 'down'

export type RemoteScanEnd = { result: FinalResult } | { failure: RemoteScanFailure }

export type RemoteScanState =
  /** As another process wrote it: to be checked. */
  | { state: 'done'; result: unknown }
  | { state: 'failed'; failure: RemoteScanFailure }
  /** How often it was taken, and for how long it has been nobody's; below zero while somebody has it. */
  | { state: 'open'; attempts: number; freeMs: number }
  | { state: 'missing' }

/** Looks that one node asks of another. Nothing of it is charged, promised, or kept beyond a crash of the database. */
export type RemoteScanStore = {
  add(remoteScan: NewRemoteScan): Promise<void>
  /** What became of it. An end is told once: it is forgotten with that. */
  take(id: string): Promise<RemoteScanState>
  remove(id: string): Promise<void>
  /** Those that wait, or whose worker died, from the queues of this process; the oldest first. */
  claim(limit: number, leaseMs: number): Promise<ClaimedRemoteScan[]>
  /** Says which of them are still ours: not those that another took over, or that nobody waits for any more. */
  extend(leases: RemoteScanLease[], leaseMs: number): Promise<RemoteScanLease[]>
  /** False, and nothing changed, when it is not ours any more. */
  complete(lease: RemoteScanLease, end: RemoteScanEnd): Promise<boolean>
  /** For another to take, as if this one had not. */
  release(lease: RemoteScanLease): Promise<void>
  /** Forgets those that nobody waits for any more, and tells where their content lies. */
  deleteExpired(): Promise<JobSource[]>
  /** Of these keys of storage, those that a remote scan still needs. */
  listNeeded(keys: string[]): Promise<string[]>
}

/** Workers that die with it, until it is given up: content that kills them is not passed around for ever. */
export const maxRemoteScanAttempts = 3
