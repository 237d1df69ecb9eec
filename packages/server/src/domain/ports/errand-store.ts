import type { ScanKind } from '@assay/contract'
import type { Content } from '../content/content.ts'
import type { Outcome } from '../scans/outcome.ts'
import type { JobSource } from './job-store.ts'

/** What a node must know to do it, beside the content. */
export type ErrandAsked = {
  kind: ScanKind
  contentName: string | null
  flagsSexy: boolean
  /** Of whoever asked; for content that is yet to be fetched. */
  accountId: string | null
  /** Of content that is there. */
  known: Pick<Content, 'bytes' | 'sha1' | 'sha256'> | null
}

export type NewErrand = {
  id: string
  /** See lanes.ts. */
  lane: string
  source: JobSource
  asked: ErrandAsked
  /** How long somebody waits for it. */
  ttlMs: number
}

/** Whoever claimed it last. Only the newest lease can end it. */
export type ErrandLease = { id: string; token: string }

export type ClaimedErrand = { lease: ErrandLease; source: JobSource; asked: ErrandAsked }

/** `busy`: the engines have too much to do. `down`: they did not answer. */
export type ErrandFailure = 'busy' | 'down'

export type ErrandEnd = { outcome: Outcome } | { failure: ErrandFailure }

export type ErrandNews =
  /** As another process wrote it: to be checked. */
  | { state: 'done'; outcome: unknown }
  | { state: 'failed'; failure: ErrandFailure }
  /** How often it was taken, and for how long it has been nobody's; below zero while somebody has it. */
  | { state: 'open'; attempts: number; freeMs: number }
  | { state: 'missing' }

/** Looks that one node asks of another. Nothing of it is charged, promised, or kept beyond a crash of the database. */
export type ErrandStore = {
  add(errand: NewErrand): Promise<void>
  /** What became of it. An end is told once: it is forgotten with that. */
  take(id: string): Promise<ErrandNews>
  remove(id: string): Promise<void>
  /** Those that wait, or whose worker died, from the lanes of this process; the oldest first. */
  claim(limit: number, leaseMs: number): Promise<ClaimedErrand[]>
  /** Says which of them are still ours: not those that another took over, or that nobody waits for any more. */
  extend(leases: ErrandLease[], leaseMs: number): Promise<ErrandLease[]>
  /** False, and nothing changed, when it is not ours any more. */
  settle(lease: ErrandLease, end: ErrandEnd): Promise<boolean>
  /** For another to take, as if this one had not. */
  giveBack(lease: ErrandLease): Promise<void>
  /** Forgets those that nobody waits for any more, and tells where their content lies. */
  deleteExpired(): Promise<JobSource[]>
  /** Of these keys of storage, those that an errand still needs. */
  listNeeded(keys: string[]): Promise<string[]>
}

/** Workers that die with it, until it is given up: content that kills them is not passed around for ever. */
export const maxErrandAttempts = 3
