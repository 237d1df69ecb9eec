import type { ScanKind } from '@assay/contract'
import { type Admitted, findCaller, findRefusal, toLaterCaller } from '../accounts/admission.ts'
import type { Describer } from '../content/describe.ts'
import type { AdmissionGate, Caller, Idempotency } from '../ports/admission-gate.ts'
import type { Clock } from '../ports/clock.ts'
import type { JobContent, JobContents } from '../ports/content-store.ts'
import type { NewJob } from '../ports/job-store.ts'
import { Problem } from '../problem.ts'
import { findFileCase, findUrlCase } from '../test-mode/find-test-case.ts'
import type { TestCase } from '../test-mode/test-cases.ts'
import { testMark } from '../test-mode/test-results.ts'
import { findMismatch } from './check-submission.ts'
import { anywhere, testQueue, toQueueName } from './queues.ts'
import { type NewScan, newScanId, type Scan } from './scan.ts'
import { unknownContent } from './scanner.ts'

type Deps = {
  gate: AdmissionGate
  describe: Describer
  contents: JobContents
  /** The kinds that this installation has an engine for. */
  kinds: ScanKind[]
  clock: Clock
  region: string
  /** There is a new job. */
  onQueued(): void
}

type Order = {
  kind: ScanKind
  contentName: string | null
  callbackUrl: string | null
  idempotency: Idempotency | undefined
  /** The request is yet to be counted, with the charge. */
  countsRequest: boolean
}

type Known = Pick<Scan, 'contentLength' | 'contentType' | 'metadata'>

/** The id is that of the first one when this is a repeat. */
type Submitted = Admitted & { scanId: string; isQueued: boolean }

/** Accepting scans to be done later: charge, job and content are one transaction, or nothing is. */
export function makeSubmitting(deps: Deps) {
  return { submitFile, submitUrl }

  async function submitFile(caller: Caller, content: JobContent, order: Order): Promise<Submitted> {
    const { contentType, hashes } = await deps.describe(content)
    const known = { contentLength: content.bytes, contentType, metadata: hashes }
    if (caller.isTest) return submitTest(caller, order, findFileCase(order, content), known)
    requireEngine(order.kind)
    const kept = await content.persist()
    const queue = toQueueName(order.kind, deps.contents.toStoreId(kept))
    const submitted = await submit(caller, order, { queue, source: kept }, known).catch(async (error) => {
      // Anything else, and we cannot know whether it was accepted: what nobody needs is swept later.
      if (isCertainlyRefused(error)) await deps.contents.remove(kept)
      throw error
    })
    if (!submitted.isQueued) await deps.contents.remove(kept)
    return submitted
  }

  async function submitUrl(caller: Caller, url: string, order: Order): Promise<Submitted> {
    if (caller.isTest) return submitTest(caller, order, findUrlCase(order, url), unknownContent)
    requireEngine(order.kind)
    return submit(
      caller,
      order,
      { queue: toQueueName(order.kind, anywhere), source: { at: 'url', url } },
      unknownContent,
    )
  }

  /** How it ends is decided now, and its content is let go: any process can end it, when its time has come. */
  function submitTest(caller: Caller, order: Order, { name, delayMs }: TestCase, known: Known): Promise<Submitted> {
    const source = { at: 'test' as const, testCase: name }
    const job = { queue: testQueue, source, ...(delayMs && { holdMs: delayMs.async }) }
    return submit(caller, order, job, { ...known, metadata: { ...known.metadata, ...testMark } })
  }

  async function submit(
    caller: Caller,
    order: Order,
    job: Omit<NewJob, 'callbackUrl'>,
    known: Known,
  ): Promise<Submitted> {
    const { callbackUrl, idempotency, countsRequest } = order
    const scan = newPending(order, known)
    const answer = await deps.gate.ask({
      ...{ keyDigest: caller.keyDigest, countsRequest, scan, job: { ...job, callbackUrl } },
      ...(idempotency === undefined ? {} : { idempotency }),
    })
    const isQueued = answer.outcome === 'admitted'
    if (isQueued) deps.onQueued()
    const first = answer.outcome === 'repeated' ? answer : undefined
    return {
      scanId: first?.scanId ?? scan.id,
      refused: findRefusal(answer) ?? (first && idempotency && findMismatch(first, idempotency)),
      isQueued,
      caller: countsRequest ? findCaller(answer) : toLaterCaller(caller, answer),
    }
  }

  /** Nobody would ever take the job. */
  function requireEngine(kind: ScanKind) {
    if (deps.kinds.includes(kind)) return
    throw new Problem({
      kind: 'engine-unavailable',
      detail: 'Scans of this kind are switched off. Nothing was charged.',
    })
  }

  function newPending({ kind, contentName }: Order, known: Known): NewScan {
    return {
      ...{ id: newScanId(), kind, mode: 'async', region: deps.region, status: 'pending', signals: null, contentName },
      ...known,
      createdAt: deps.clock.now(),
      completedAt: null,
    }
  }
}

export type Submitting = ReturnType<typeof makeSubmitting>

const isCertainlyRefused = (error: unknown) => error instanceof Problem && error.refusal.kind !== 'outcome-unknown'
