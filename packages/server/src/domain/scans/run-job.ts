import type { ScanKind } from '@assay/contract'
import { keepTrying } from '../keep-trying.ts'
import type { Clock } from '../ports/clock.ts'
import type { JobContents, KeptContent } from '../ports/content-store.ts'
import type { ClaimedJob, JobStore, Settlement } from '../ports/job-store.ts'
import { getTestCase } from '../test-mode/find-test-case.ts'
import { isOfTest, toTestOutcome } from '../test-mode/test-outcomes.ts'
import { isPassing } from './is-passing.ts'
import type { Outcome, Outcomes } from './outcome.ts'
import type { Scan } from './scan.ts'
import { toScanResult } from './scan-result.ts'

type Deps = {
  jobs: JobStore
  contents: JobContents
  outcomes: Outcomes
  clock: Clock
  observeVerdict(kind: ScanKind, status: string, isTest: boolean): void
  reportFailure(error: unknown): void
  /** Its result is there; `isCalledBack`: and somebody is to be told. */
  onSettled(scanId: string, isCalledBack: boolean): void
  /** Between attempts: an engine that fell needs a moment to get up. */
  pausesMs?: readonly number[]
}

/** What ends by our own fault gives its credit back. */
type End = Outcome & { refunds: boolean }

const maxAttempts = 3
const defaultPausesMs = [2000, 10_000]

/** One attempt at a job that was claimed: it is settled, or given back to be tried again. `giveUp` settles it at once. */
export function makeRunJob(deps: Deps) {
  const { pausesMs = defaultPausesMs } = deps

  return {
    async run(job: ClaimedJob, signal: AbortSignal): Promise<void> {
      const end = await findEnd(job, signal)
      if (end !== undefined) await settle(job, end)
    },
    giveUp: (job: ClaimedJob) => settle(job, toFailed(job.scan)),
  }

  async function settle(job: ClaimedJob, end: End) {
    const settlement = toSettlement(job, end)
    const isOurs = await keepTrying(() => deps.jobs.settle(job.lease, settlement))
    // Somebody else has it by now, and needs the content.
    if (!isOurs) return
    // It is settled all the same; what stays behind is swept.
    if (isKept(job.source)) await deps.contents.remove(job.source).catch(deps.reportFailure)
    deps.observeVerdict(job.scan.kind, settlement.scan.status, isOfTest(job.scan))
    deps.onSettled(job.scan.id, settlement.deliveryBody !== undefined)
  }

  async function findEnd(job: ClaimedJob, signal: AbortSignal): Promise<End | undefined> {
    // The one before died with whoever tried it.
    if (job.attempt > maxAttempts) return toFailed(job.scan)
    try {
      return { ...(await findOutcome(job, signal)), refunds: false }
    } catch (error) {
      // That we are stopping is nobody's failure either.
      const counts = !(isPassing(error) || signal.aborted)
      if (counts) deps.reportFailure(error)
      if (counts && job.attempt >= maxAttempts) return toFailed(job.scan)
      const ms = signal.aborted ? 0 : (pausesMs[job.attempt - 1] ?? 0)
      await deps.jobs.giveBack(job.lease, { ms, counts })
      return undefined
    }
  }

  async function findOutcome(job: ClaimedJob, signal: AbortSignal): Promise<Outcome> {
    const { source, accountId, flagsSexy, scan } = job
    if (source.at === 'test') {
      return toTestOutcome(getTestCase(source.testCase), { kind: scan.kind, flagsSexy, known: scan })
    }
    const asked = { kind: scan.kind, contentName: scan.contentName, flagsSexy, isTest: false }
    if (source.at !== 'url') return ofKept(source, scan, asked)
    return deps.outcomes.ofUrl(source.url, { ...asked, accountId, mode: 'async', signal })
  }

  async function ofKept(kept: KeptContent, scan: Scan, asked: Parameters<Outcomes['ofContent']>[1]): Promise<Outcome> {
    const { hash_sha1: sha1 = '', hash_sha256: sha256 = '' } = scan.metadata ?? {}
    const content = await deps.contents.open(kept, { bytes: scan.contentLength, sha1, sha256 })
    return deps.outcomes.ofContent(content, asked).finally(content.release)
  }

  function toSettlement({ scan: before, callbackUrl }: ClaimedJob, { refunds, ...outcome }: End): Settlement {
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

const isKept = (source: ClaimedJob['source']): source is KeptContent => source.at === 'row' || source.at === 'storage'
