import type { ScanKind } from '@assay/contract'
import type { Clock } from '../ports/clock.ts'
import type { ContentLocation, JobContents } from '../ports/content-store.ts'
import type { ClaimedJob, Completion, JobStore } from '../ports/job-store.ts'
import { isTransient, keepTrying } from '../retry.ts'
import { getTestCase } from '../test-mode/find-test-case.ts'
import { isOfTest, toTestResult } from '../test-mode/test-results.ts'
import { type Scan, toScanResult } from './scan.ts'
import type { FinalResult, Scanner } from './scanner.ts'

type Deps = {
  jobs: JobStore
  contents: JobContents
  scanner: Scanner
  clock: Clock
  observeVerdict(kind: ScanKind, status: string, isTest: boolean): void
  reportFailure(error: unknown): void
  /** Its result is there; `isCalledBack`: and somebody is to be told. */
  onCompleted(scanId: string, isCalledBack: boolean): void
  /** Between attempts: an engine that fell needs a moment to get up. */
  pausesMs?: readonly number[]
}

/** What ends by our own fault gives its credit back. */
type End = FinalResult & { refunds: boolean }

const maxAttempts = 3
const defaultPausesMs = [2000, 10_000]

/** One attempt at a job that was claimed: it is completed, or given back to be tried again. `giveUp` completes it at once. */
export function makeRunJob(deps: Deps) {
  const { pausesMs = defaultPausesMs } = deps

  return {
    async run(job: ClaimedJob, signal: AbortSignal): Promise<void> {
      const end = await findEnd(job, signal)
      if (end !== undefined) await complete(job, end)
    },
    giveUp: (job: ClaimedJob) => complete(job, toFailed(job.scan)),
  }

  async function complete(job: ClaimedJob, end: End) {
    const completion = toCompletion(job, end)
    const isOurs = await keepTrying(() => deps.jobs.complete(job.lease, completion))
    // Somebody else has it by now, and needs the content.
    if (!isOurs) return
    // It is completed all the same; what stays behind is swept.
    if (isKept(job.source)) await deps.contents.remove(job.source).catch(deps.reportFailure)
    deps.observeVerdict(job.scan.kind, completion.scan.status, isOfTest(job.scan))
    deps.onCompleted(job.scan.id, completion.deliveryBody !== undefined)
  }

  async function findEnd(job: ClaimedJob, signal: AbortSignal): Promise<End | undefined> {
    // The one before died with whoever tried it.
    if (job.attempt > maxAttempts) return toFailed(job.scan)
    try {
      return { ...(await findResult(job, signal)), refunds: false }
    } catch (error) {
      // That we are stopping is nobody's failure either.
      const counts = !(isTransient(error) || signal.aborted)
      if (counts) deps.reportFailure(error)
      if (counts && job.attempt >= maxAttempts) return toFailed(job.scan)
      const ms = signal.aborted ? 0 : (pausesMs[job.attempt - 1] ?? 0)
      await deps.jobs.release(job.lease, { ms, counts })
      return undefined
    }
  }

  async function findResult(job: ClaimedJob, signal: AbortSignal): Promise<FinalResult> {
    const { source, accountId, flagsSexy, scan } = job
    if (source.at === 'test') {
      return toTestResult(getTestCase(source.testCase), { kind: scan.kind, flagsSexy, known: scan })
    }
    const asked = { kind: scan.kind, contentName: scan.contentName, flagsSexy, isTest: false }
    if (source.at !== 'url') return ofKept(source, scan, asked)
    return deps.scanner.scanUrl(source.url, { ...asked, accountId, mode: 'async', signal })
  }

  async function ofKept(
    kept: ContentLocation,
    scan: Scan,
    asked: Parameters<Scanner['scanContent']>[1],
  ): Promise<FinalResult> {
    const { hash_sha1: sha1 = '', hash_sha256: sha256 = '' } = scan.metadata ?? {}
    const content = await deps.contents.open(kept, { bytes: scan.contentLength, sha1, sha256 })
    return deps.scanner.scanContent(content, asked).finally(content.release)
  }

  function toCompletion({ scan: before, callbackUrl }: ClaimedJob, { refunds, ...outcome }: End): Completion {
    const scan: Scan = { ...before, ...outcome, completedAt: deps.clock.now() }
    const deliveryBody = callbackUrl === null ? undefined : JSON.stringify(toScanResult(scan))
    return { scan, refunds, deliveryBody }
  }
}

const toFailed = ({ metadata, contentLength, contentType }: Scan): End => ({
  ...{ status: 'error', signals: ['Error:EngineFailed'], metadata, contentLength, contentType },
  // A test was never charged.
  refunds: !isOfTest({ metadata }),
})

const isKept = (source: ClaimedJob['source']): source is ContentLocation =>
  source.at === 'row' || source.at === 'storage'
