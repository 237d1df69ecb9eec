import type { Scan } from '../scans/scan.ts'
import type { KnownHash } from './hash-list-store.ts'

export type RevisedStatus = 'clean' | 'threat' | 'error'

/** A completed result together with everything that is known about its hash now. */
export type KnownResult = {
  scan: Scan & { status: RevisedStatus }
  accountId: string
  /** The status of the last revision; null without one. */
  revisedStatus: RevisedStatus | null
  /** Reasons of the entries of the block list and the allow list for the hash; null without one. */
  blocked: string | null
  allowed: string | null
  /** The entry of the imported hash lists that counts; null without one. */
  known: KnownHash | null
  /** The entry of a signature file, which engines find; null without one. */
  signature: KnownHash | null
  /** The receiver of webhooks about revisions; null when the account asked for none. */
  revisionUrl: string | null
}

export type NewRevision = { status: RevisedStatus; reason: string }

/** Decides whether new knowledge changes a result; undefined when it does not. */
export type DecideRevision = (result: KnownResult) => NewRevision | undefined

/** Returns the body of the webhook about a revision. */
export type MakeRevisionBody = (result: KnownResult, revision: NewRevision, at: Date) => string

export type RevisionLease = { id: string; token: string }
export type ClaimedRevisionWork = RevisionLease & {
  /** The file of hash signatures that changed; null for changes of lists and entries. */
  signatureFile: string | null
}

export type RevisionPiece = {
  /** `lost`: another worker holds the work, or has finished it. */
  state: 'more' | 'done' | 'lost'
  revised: number
  /** Webhook deliveries that were recorded with the revisions. */
  deliveries: number
}

export type Revision = {
  id: string
  scanId: string
  accountId: string
  accountName: string
  status: RevisedStatus
  previousStatus: RevisedStatus
  reason: string
  at: Date
  contentName: string | null
  sha256: string | null
}

/** Revisions of results, and the work of finding the results that new knowledge concerns. */
export type RevisionStore = {
  /** Claims the work that is due, begun work first and then new work, if no other is being worked on. */
  claim(leaseMs: number): Promise<ClaimedRevisionWork[]>
  /** Returns the leases that are still held. */
  extend(leases: RevisionLease[], leaseMs: number): Promise<RevisionLease[]>
  release(leases: RevisionLease[]): Promise<void>
  /**
   * Ends the lease of work that failed. It is claimed again after a pause, which is longer for older work, and in two
   * halves if it is about several changes.
   */
  postpone(lease: RevisionLease): Promise<void>
  /** Revises the next results, with their webhooks, in one transaction. */
  runPiece(lease: RevisionLease): Promise<RevisionPiece>
  /** Ends work that has no pieces. */
  finish(lease: RevisionLease): Promise<void>
  /** Newest first, beginning after the revision `before`: of one account, or of all. */
  listRevisions(filter: {
    accountId: string | undefined
    before: string | undefined
    limit: number
  }): Promise<Revision[]>
  /** Deletes revisions of results that are no longer kept. */
  deleteOld(resultDays: number): Promise<number>
}
