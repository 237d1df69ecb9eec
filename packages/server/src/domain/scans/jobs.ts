import type { ScanKind } from '@assay/contract'
import type { Clock } from '../clock.ts'
import type { ContentLocation, JobContents } from '../ports/content-store.ts'
import { EngineStarved } from '../ports/engines.ts'
import type { ClaimedJob, Completion, JobStore } from '../ports/job-store.ts'
import { isTransient, retryBriefly } from '../retry.ts'
import { getTestCase, isTestScan, toTestResult } from '../test-mode.ts'
import { type FinalResult, type Scan, toScanResult } from './scan.ts'
import type { Scanner } from './scanner.ts'

/** The store id in the queue names of jobs with a URL, because every process can download a URL. */
export const anyStore = 'anywhere'

/** The queue for jobs of test keys, which need neither an engine nor content: every process can complete them. */
export const testQueue = 'test'

/**
 * The queue name of a job says what a process needs to run it: an engine for the kind of scan, and access to the store
 * with the content. Processes that share a database but not their keys, disks or engines leave each other's jobs alone.
 */
export const toQueueName = (kind: ScanKind, storeId: string): string => `${kind} ${storeId}`

export const listQueues = (kinds: ScanKind[], storeIds: string[]): string[] => [
  testQueue,
  ...kinds.flatMap((kind) => [anyStore, ...storeIds].map((storeId) => toQueueName(kind, storeId))),
]

type Deps = {
  jobs: JobStore
  contents: JobContents
  scanner: Scanner
  clock: Clock
  observeVerdict(kind: ScanKind, status: string, isTest: boolean): void
  reportFailure(error: unknown): void
  /** Called when a result is recorded; `hasDelivery` when a webhook delivery was recorded with it. */
  onCompleted(scanId: string, hasDelivery: boolean): void
  /** Pauses between attempts, in which a failed engine can restart. */
  pausesMs?: readonly number[]
}

/** `refunds`: the scan failed by our own fault, so its credit is given back. */
type JobResult = FinalResult & { refunds: boolean }

const maxAttempts = 3
const defaultPausesMs = [2000, 10_000]

/** `run` makes one attempt at a claimed job and completes or releases it; `giveUp` completes it as failed. */
export function makeRunJob(deps: Deps) {
  const { pausesMs = defaultPausesMs } = deps
  let completing = 0

  return {
    async run(job: ClaimedJob, signal: AbortSignal): Promise<void> {
      const result = await attempt(job, signal)
      if (result === undefined) return
      const completion = toCompletion(job, result)
      completing++
      const isLeaseValid = await record(job, completion).finally(() => completing--)
      if (isLeaseValid) await finish(job, completion)
    },
    async giveUp(job: ClaimedJob): Promise<void> {
      const completion = toCompletion(job, toFailure(job.scan))
      if (await record(job, completion)) await finish(job, completion)
    },
    /** Counts the jobs of `run` whose result waits to be recorded. */
    countCompleting: () => completing,
  }

  /** Returns false when another worker has claimed the job, and needs its content. */
  function record({ lease }: ClaimedJob, completion: Completion): Promise<boolean> {
    return retryBriefly(() => deps.jobs.complete(lease, completion))
  }

  async function finish(job: ClaimedJob, completion: Completion) {
    const { source } = job
    if (source.at === 'row' || source.at === 'storage') {
      // The job is completed even when the removal fails; the sweeper removes content that no job needs.
      await deps.contents.remove(source).catch(deps.reportFailure)
    }
    deps.observeVerdict(job.scan.kind, completion.scan.status, isTestScan(job.scan))
    deps.onCompleted(job.scan.id, completion.deliveryBody !== undefined)
  }

  /** Returns undefined after it has released the job for another attempt. */
  async function attempt(job: ClaimedJob, signal: AbortSignal): Promise<JobResult | undefined> {
    // The worker of the last attempt died without reporting a failure.
    if (job.attempt > maxAttempts) return toFailure(job.scan)
    try {
      return { ...(await scan(job, signal)), refunds: false }
    } catch (error) {
      // Neither an overload nor our own stop is a failure of the job.
      const countsAttempt = !signal.aborted && (!isTransient(error) || error instanceof EngineStarved)
      if (countsAttempt) deps.reportFailure(error)
      if (countsAttempt && job.attempt >= maxAttempts) return toFailure(job.scan)
      const ms = signal.aborted ? 0 : (pausesMs[job.attempt - 1] ?? 0)
      await deps.jobs.release(job.lease, { ms, countsAttempt })
      return undefined
    }
  }

  async function scan({ source, accountId, flagsSexy, scan }: ClaimedJob, signal: AbortSignal): Promise<FinalResult> {
    const { kind, contentName } = scan
    if (source.at === 'test')
      return toTestResult(getTestCase(source.testCase), { kind, flagsSexy, contentFields: scan })
    const job = { accountId, order: scan.createdAt.getTime(), stopping: signal }
    const options = { kind, contentName, flagsSexy, accountId, isTest: false, job }
    if (source.at === 'url') return deps.scanner.scanUrl(source.url, { ...options, mode: 'async', signal })
    const content = await openContent(source, accountId, scan)
    try {
      return await deps.scanner.scanContent(content, options)
    } finally {
      await content.release()
    }
  }

  function openContent(location: ContentLocation, accountId: string, scan: Scan) {
    const { id: scanId, contentLength: bytes, contentType, metadata } = scan
    const { hash_sha1: sha1 = '', hash_sha256: sha256 = '' } = metadata ?? {}
    const description = { contentType, hashes: { hash_sha1: sha1, hash_sha256: sha256 } }
    return deps.contents.open(location, { bytes, sha1, sha256, description }, { accountId, scanId })
  }

  function toCompletion({ scan: pending, callbackUrl }: ClaimedJob, { refunds, ...result }: JobResult): Completion {
    const scan: Scan = { ...pending, ...result, completedAt: deps.clock.now() }
    const deliveryBody = callbackUrl === null ? undefined : JSON.stringify(toScanResult(scan))
    return { scan, refunds, deliveryBody }
  }
}

const toFailure = ({ metadata, contentLength, contentType }: Scan): JobResult => ({
  status: 'error',
  signals: ['Error:EngineFailed'],
  metadata,
  contentLength,
  contentType,
  // Scans of test keys were never charged.
  refunds: !isTestScan({ metadata }),
})
