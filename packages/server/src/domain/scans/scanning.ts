import type { ScanKind } from '@assay/contract'
import { validate as isUuid } from 'uuid'
import { type Admitted, findCaller, findRefusal, toLaterCaller } from '../accounts/admission.ts'
import type { Content } from '../content/content.ts'
import type { Describer } from '../content/describe.ts'
import type { AdmissionGate, Caller, Idempotency, IdempotencyStore } from '../ports/admission-gate.ts'
import type { Clock } from '../ports/clock.ts'
import { EngineBusy, EngineDown } from '../ports/engines.ts'
import type { ScanStore } from '../ports/scan-store.ts'
import { Problem } from '../problem.ts'
import { isOfTest, testMark } from '../test-mode/test-results.ts'
import { findMismatch } from './check-submission.ts'
import type { ResultWaiters } from './result-waiters.ts'
import { type NewScan, newScanId, type Scan } from './scan.ts'
import { type FinalResult, type Scanner, unknownContent } from './scanner.ts'

type Deps = {
  scans: ScanStore
  gate: AdmissionGate
  repeats: IdempotencyStore
  scanner: Scanner
  describe: Describer
  resultWaiters: ResultWaiters
  clock: Clock
  region: string
  /** Told of each scan that the engines could not answer. */
  reportFailure(error: unknown): void
  observeVerdict(kind: ScanKind, status: string, isTest: boolean): void
}

type Order = {
  kind: ScanKind
  contentName: string | null
  /** The request is yet to be counted, with the charge. */
  countsRequest: boolean
  idempotency: Idempotency | undefined
  /** Aborted when the caller has left. */
  abortWhenClientLeaves?(): AbortSignal
}

/** What is asked for twice has the same number: should it have been charged the first time, it is not charged again. */
type Numbered = Order & { id: string }

type Whose = Pick<Caller, 'accountId' | 'isTest'>

/** Finds out how a scan ends, for a caller with these settings. */
type End = (asking: Caller) => Promise<FinalResult>

type Scanned = Admitted & { scan: Scan }

const nameOf: Record<ScanKind, string> = { malware: 'malware', nsfw_image: 'NSFW image' }
/** About what a full queue takes to empty. */
const retryAfterSeconds = 5
/** A result that another process completed is found by looking again. */
const lookAgainMs = 500

export function makeScanning(deps: Deps) {
  return {
    /** Waits up to `waitMs` for one that is pending, as long as somebody wants to know. */
    async getScan(whose: Whose, kind: ScanKind, id: string, { waitMs = 0, signal = never } = {}): Promise<Scan> {
      const deadline = performance.now() + waitMs
      for (;;) {
        const leftMs = deadline - performance.now()
        if (leftMs <= 0 || signal.aborted) return getRecorded(whose, kind, id)
        const over = new AbortController()
        try {
          // Waited for before it is looked at: it may be completed in between.
          const rung = deps.resultWaiters.wait(
            id,
            Math.min(leftMs, lookAgainMs),
            AbortSignal.any([signal, over.signal]),
          )
          const scan = await getRecorded(whose, kind, id)
          if (scan.status !== 'pending') return scan
          await rung
        } finally {
          over.abort()
        }
      }
    },

    scanNow: (caller: Caller, content: Content, order: Order): Promise<Scanned> =>
      scan(caller, toNumbered(order), content, (asking) => deps.scanner.scanContent(content, { ...asking, ...order })),

    scanUrlNow: (caller: Caller, url: string, order: Order, signal: AbortSignal): Promise<Scanned> =>
      scan(caller, toNumbered(order), undefined, (asking) =>
        deps.scanner.scanUrl(url, { ...asking, ...order, mode: 'sync' as const, signal }),
      ),
  }

  /**
   * One answer for all that is not there: no job, another account's, the other kind, not even an identifier; and for a
   * test key what was scanned in earnest, for other keys what was not scanned at all.
   */
  async function getRecorded({ accountId, isTest }: Whose, kind: ScanKind, id: string): Promise<Scan> {
    const scan = isUuid(id) ? await deps.scans.findScan(accountId, kind, id) : undefined
    if (scan !== undefined && isOfTest(scan) === isTest) return scan
    throw new Problem({ kind: 'validation', errors: { id: ['The job could not be found.'] } })
  }

  /**
   * While the caller waits. Charge, job and verdict are one transaction, after the scan: a crash before it has accepted
   * nothing, and there is nothing to undo or to give back.
   */
  async function scan(caller: Caller, order: Numbered, content: Content | undefined, end: End): Promise<Scanned> {
    const { kind, countsRequest, idempotency } = order
    const first = idempotency && (await findFirst(caller, kind, idempotency))
    if (first !== undefined) return { scan: first, caller, refused: undefined }
    const done = await complete(caller, order, content, end)
    const answer = await deps.gate.ask({
      ...{ keyDigest: caller.keyDigest, countsRequest, scan: done },
      ...(idempotency === undefined ? {} : { idempotency }),
      // What is known of a caller who is taken on trust may be a second old.
      ...(countsRequest && kind === 'nsfw_image' ? { flagsSexy: caller.flagsSexy } : {}),
    })
    if (answer.outcome === 'changed') return scan(answer.caller, { ...order, countsRequest: false }, content, end)
    // Refused when the key was revoked since it was last looked at, or other scans took the last credits.
    const refused = findRefusal(answer)
    const later = countsRequest ? findCaller(answer) : toLaterCaller(caller, answer)
    if (answer.outcome !== 'repeated' || idempotency === undefined) {
      if (refused === undefined) deps.observeVerdict(kind, done.status, caller.isTest)
      return { scan: done, caller: later, refused }
    }
    return { scan: await getFirst(caller, kind, answer, idempotency), caller: later, refused: undefined }
  }

  async function findFirst(caller: Caller, kind: ScanKind, idempotency: Idempotency): Promise<Scan | undefined> {
    const { operation, key } = idempotency
    const first = await deps.repeats.findRepeat(caller.accountId, operation, key)
    return first && getFirst(caller, kind, first, idempotency)
  }

  async function getFirst(
    caller: Caller,
    kind: ScanKind,
    first: { scanId: string; fingerprint: string },
    idempotency: Idempotency,
  ): Promise<Scan> {
    const mismatch = findMismatch(first, idempotency)
    if (mismatch !== undefined) throw mismatch
    return getRecorded(caller, kind, first.scanId)
  }

  async function complete(
    caller: Caller,
    { id, kind, contentName }: Numbered,
    content: Content | undefined,
    end: End,
  ): Promise<NewScan> {
    const asked = { id, kind, mode: 'sync' as const, region: deps.region, contentName }
    const createdAt = deps.clock.now()
    try {
      return { ...asked, createdAt, ...(await end(caller)), completedAt: deps.clock.now() }
    } catch (error) {
      if (error instanceof EngineBusy) throw new Problem({ kind: 'overloaded', retryAfterSeconds }, { cause: error })
      // No room for it: that is a refusal, and no failure.
      if (error instanceof Problem) throw error
      // One that a test asked for is not ours to mend.
      if (!caller.isTest) deps.reportFailure(error)
      deps.observeVerdict(kind, 'error', caller.isTest)
      const failed = { status: 'error' as const, signals: ['Error:EngineFailed'], completedAt: deps.clock.now() }
      await deps.scans.recordFailure(caller.accountId, {
        ...asked,
        createdAt,
        ...(await toKnown(caller, content)),
        ...failed,
      })
      if (!(error instanceof EngineDown)) throw error
      const detail = `The ${nameOf[kind]} engine did not answer. Nothing was charged; try again.`
      throw new Problem({ kind: 'engine-unavailable', detail }, { cause: error })
    }
  }

  async function toKnown({ isTest }: Caller, content: Content | undefined) {
    if (content === undefined) return { ...unknownContent, metadata: isTest ? testMark : null }
    const { contentType, hashes } = await deps.describe(content)
    return { contentLength: content.bytes, contentType, metadata: { ...hashes, ...(isTest ? testMark : {}) } }
  }
}

const toNumbered = (order: Order): Numbered => ({ ...order, id: newScanId() })

const never = new AbortController().signal

export type Scanning = ReturnType<typeof makeScanning>
