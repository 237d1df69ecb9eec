import type { ScanKind } from '@assay/contract'
import { type Admitted, toAdmitted } from '../accounts/admission.ts'
import { findKeyRefusal } from '../accounts/keys.ts'
import type { Clock } from '../clock.ts'
import type { Content } from '../content/content.ts'
import type { Describer } from '../content/media-type.ts'
import type { AdmissionGate, Caller, Idempotency } from '../ports/admission-gate.ts'
import type { JobContent, JobContents } from '../ports/content-store.ts'
import type { NewJob } from '../ports/job-store.ts'
import { Problem } from '../problem.ts'
import { findFileCase, findUrlCase, type TestCase, testMark } from '../test-mode.ts'
import { findMismatch } from './check-submission.ts'
import { anyStore, testQueue, toQueueName } from './jobs.ts'
import { type ContentFields, type NewScan, newScanId, unknownContentFields } from './scan.ts'
import type { Degradation } from './scanner.ts'

type Deps = {
  gate: AdmissionGate
  describe: Describer
  contents: JobContents
  /** The kinds of scan that this installation has an engine for. */
  kinds: ScanKind[]
  /** The clock of the database. */
  clock: Clock
  region: string
  degradation: Pick<Degradation, 'findRefusal'>
  /** Bounds the webhooks of test keys, which cost nothing. */
  testWebhooks: { maxPerDay: number; take(accountId: string): Promise<number | undefined> }
  /** Called when a new job was recorded. */
  onQueued(): void
}

export type JobRequest = {
  kind: ScanKind
  /** Address of the client, which the key may be restricted to. */
  address: string
  contentName: string | null
  callbackUrl: string | null
  idempotency: Idempotency | undefined
  /** The gate has not counted the request yet, and counts it together with the charge. */
  countsRequest: boolean
}

/** A repeated request gets the id of the first one. */
export type Submitted = Admitted & { scanId: string; isQueued: boolean }

/** Accepts background scans. The charge, the job and small content are recorded in one transaction, or nothing is. */
export function makeSubmitting(deps: Deps): Submitting {
  return { submitFile, submitUrl }

  async function submitFile(caller: Caller, content: JobContent, request: JobRequest): Promise<Submitted> {
    const { contentType, hashes } = await deps.describe(content, caller.accountId)
    const contentFields = { contentLength: content.bytes, contentType, metadata: hashes }
    if (caller.isTest) return submitTest(caller, request, findFileCase(request, content), contentFields)
    requireEngine(request.kind)
    const scanId = newScanId(deps.clock.now())
    const source = await content.persist({ accountId: caller.accountId, scanId })
    const queue = toQueueName(request.kind, deps.contents.toStoreId(source))
    const submitted = await submit(caller, request, { queue, source }, contentFields, scanId).catch(async (error) => {
      // After any other error the job may have been accepted: the sweeper removes content that no job needs.
      if (isCertainlyRefused(error)) await deps.contents.remove(source)
      throw error
    })
    if (!submitted.isQueued) await deps.contents.remove(source)
    return submitted
  }

  async function submitUrl(caller: Caller, url: string, request: JobRequest): Promise<Submitted> {
    if (caller.isTest) return submitTest(caller, request, findUrlCase(request, url), unknownContentFields)
    requireEngine(request.kind)
    const queue = toQueueName(request.kind, anyStore)
    return submit(caller, request, { queue, source: { at: 'url', url } }, unknownContentFields)
  }

  /** The result of a test is decided now and its content dropped, so that every process can complete it in time. */
  async function submitTest(
    caller: Caller,
    request: JobRequest,
    { name, delayMs }: TestCase,
    contentFields: ContentFields,
  ): Promise<Submitted> {
    if (request.callbackUrl !== null) await takeTestWebhook(deps, caller)
    const source = { at: 'test' as const, testCase: name }
    const job = { queue: testQueue, source, ...(delayMs && { holdMs: delayMs.async }) }
    return submit(caller, request, job, { ...contentFields, metadata: { ...contentFields.metadata, ...testMark } })
  }

  async function submit(
    caller: Caller,
    request: JobRequest,
    job: Omit<NewJob, 'callbackUrl'>,
    contentFields: ContentFields,
    scanId = newScanId(deps.clock.now()),
  ): Promise<Submitted> {
    const { callbackUrl, idempotency, countsRequest } = request
    const scan = newPending(deps, scanId, request, contentFields)
    const answer = await deps.gate.admit({
      keyDigest: caller.keyDigest,
      countsRequest,
      scan,
      job: { ...job, callbackUrl },
      restrictions: caller.restrictions,
      ...(idempotency === undefined ? {} : { idempotency }),
    })
    const isQueued = answer.outcome === 'admitted'
    if (isQueued) deps.onQueued()
    const first = answer.outcome === 'repeated' ? answer : undefined
    const admitted = toAdmitted(caller, countsRequest, answer)
    if (answer.outcome === 'changed') {
      const { kind, address } = request
      const restricted = findKeyRefusal(answer.caller.restrictions, { action: 'submit', kind, address })
      if (restricted !== undefined) return { ...admitted, refused: restricted, scanId, isQueued }
      return submit(answer.caller, { ...request, countsRequest: false }, job, contentFields, scanId)
    }
    const refused = admitted.refused ?? (first && idempotency && findMismatch(first, idempotency))
    return { ...admitted, refused, scanId: first?.scanId ?? scan.id, isQueued }
  }

  /** Refuses a job that no worker of this installation could ever claim, or may claim while it is degraded. */
  function requireEngine(kind: ScanKind) {
    const refusal = kind === 'malware' ? deps.degradation.findRefusal() : undefined
    if (refusal !== undefined) throw refusal
    if (deps.kinds.includes(kind)) return
    const detail = 'Scans of this kind are switched off. Nothing was charged.'
    throw new Problem({ kind: 'engine-unavailable', detail })
  }
}

function newPending(
  deps: Pick<Deps, 'region' | 'clock'>,
  id: string,
  { kind, contentName }: JobRequest,
  contentFields: ContentFields,
): NewScan {
  return {
    id,
    kind,
    mode: 'async',
    region: deps.region,
    status: 'pending',
    signals: null,
    contentName,
    ...contentFields,
    createdAt: deps.clock.now(),
    completedAt: null,
  }
}

/** Refuses a webhook of a test key beyond the bound of the day. */
async function takeTestWebhook({ testWebhooks }: Deps, { accountId }: Caller) {
  const retryAfterSeconds = await testWebhooks.take(accountId)
  if (retryAfterSeconds === undefined) return
  const detail =
    `Test keys of an account cause at most ${testWebhooks.maxPerDay} webhooks a day (UTC). ` +
    `Omit callback_url, or try again in ${retryAfterSeconds} s.`
  throw new Problem({ kind: 'rate-limited', retryAfterSeconds, detail })
}

/** Accepts background scans of content of the type `C`. */
export type Submitting<C extends Content = JobContent> = {
  submitFile(caller: Caller, content: C, request: JobRequest): Promise<Submitted>
  submitUrl(caller: Caller, url: string, request: JobRequest): Promise<Submitted>
}

const isCertainlyRefused = (error: unknown) => error instanceof Problem && error.refusal.kind !== 'outcome-unknown'
