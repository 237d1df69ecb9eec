import type { Scan } from '../scans/scan.ts'

/** Where the content of a background scan lies until it is completed. */
export type JobSource =
  /** Small content, encrypted, in the database itself: accepted with the job, and gone with it. */
  | { at: 'row'; sealed: Buffer }
  /** In storage, encrypted, under this key. */
  | { at: 'storage'; key: string }
  /** Not here yet. */
  | { at: 'url'; url: string }

/** Of a test key: no content, only how it is to end. */
type TestSource = { at: 'test'; testCase: string }

export type NewJob = {
  /** What a process must have to do it; see queues.ts. */
  queue: string
  source: JobSource | TestSource
  callbackUrl: string | null
  /** Nobody is to take it before that time is over. */
  holdMs?: number
}

/** Whoever claimed a job last. Only the newest lease of a job can complete it. */
export type Lease = { scanId: string; token: string }

export type ClaimedJob = Omit<NewJob, 'queue' | 'holdMs'> & {
  lease: Lease
  accountId: string
  flagsSexy: boolean
  scan: Scan
  /** This one, from 1 on. */
  attempt: number
}

export type Completion = {
  scan: Scan
  /** Its end is our own fault: the credit goes back, once. */
  refunds: boolean
  /** The exact bytes of the webhook, for a job with a callback. */
  deliveryBody: string | undefined
}

export type JobStore = {
  /**
   * Takes jobs that wait, or whose lease ran out, from the queues of this process. Accounts take turns: one with many jobs does not keep another's from
   * being next.
   */
  claim(limit: number, leaseMs: number): Promise<ClaimedJob[]>
  /** Takes jobs that nobody has taken since before that time, whatever their queue. */
  claimAbandoned(before: Date, limit: number, leaseMs: number): Promise<ClaimedJob[]>
  /** Says which of them are still ours; those are ours for another while. */
  extend(leases: Lease[], leaseMs: number): Promise<Lease[]>
  /**
   * Verdict, refund and webhook delivery, and the end of the job, in one transaction. False, and nothing changed, when
   * somebody else has the job by now.
   */
  complete(lease: Lease, completion: Completion): Promise<boolean>
  /** Lets somebody have it again, after a pause. Unless it `counts`, the attempt is as if it had not been. */
  release(lease: Lease, pause: { ms: number; counts: boolean }): Promise<void>
  /** Exact up to 10,000 that wait, and an estimate beyond. */
  countJobs(): Promise<{ waiting: number; running: number; oldestAt: Date | undefined }>
  /** Of these keys of storage, those that a job still needs. */
  listNeeded(keys: string[]): Promise<string[]>
}
