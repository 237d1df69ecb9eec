import type { ScanKind } from '@assay/contract'
import { validate as isUuid } from 'uuid'
import { type Admitted, toAdmitted } from '../accounts/admission.ts'
import { findKeyRefusal } from '../accounts/keys.ts'
import type { Clock } from '../clock.ts'
import type { Content } from '../content/content.ts'
import type { Describer } from '../content/media-type.ts'
import type { AdmissionGate, Caller, Idempotency, IdempotencyStore } from '../ports/admission-gate.ts'
import { EngineBusy, EngineDown } from '../ports/engines.ts'
import type { ScanStore } from '../ports/scan-store.ts'
import { Problem } from '../problem.ts'
import { isTestScan, testMark } from '../test-mode.ts'
import { findMismatch } from './check-submission.ts'
import { type FinalResult, newScanId, type Scan, unknownContentFields } from './scan.ts'
import type { Scanner } from './scanner.ts'

type Deps = {
  scans: Pick<ScanStore, 'findScan' | 'recordFailure'>
  gate: AdmissionGate
  repeats: IdempotencyStore
  scanner: Scanner
  describe: Describer
  resultWaiters: ResultWaiters
  clock: Clock
  region: string
  /** The number of scans in progress that keeps all engines busy. */
  fullLoad: number
  /** Called for each scan that the engines could not answer. */
  reportFailure(error: unknown): void
  observeVerdict(kind: ScanKind, status: string, isTest: boolean): void
}

export type ScanRequest = {
  kind: ScanKind
  /** Address of the client, which the key may be restricted to. */
  address: string
  contentName: string | null
  /** The gate has not counted the request yet, and counts it together with the charge. */
  countsRequest: boolean
  idempotency: Idempotency | undefined
  /** Returns a signal that is aborted when the caller leaves. */
  abortWhenClientLeaves?(): AbortSignal
}

/** One synchronous scan. Its id stays the same when the call to the gate is repeated, so that it is charged once. */
type SyncScan = ScanRequest & {
  id: string
  /** Undefined for a URL. */
  content: Content | undefined
  run(caller: Caller): Promise<FinalResult>
}

export type Owner = Pick<Caller, 'accountId' | 'isTest'>
export type AdmittedScan = Admitted & { scan: Scan }

const engineNames: Record<ScanKind, string> = { malware: 'malware', nsfw_image: 'NSFW image' }
/** Seconds to send in Retry-After: roughly the time in which a full queue drains. */
const retryAfterSeconds = 5
/** How often to read a pending scan again, in case a notification of its result is lost. */
const pollMs = 500
/**
 * The part of its own time that a scan may wait for others before it is charged, and the longest such wait: scans that
 * are charged together share the cost of a statement, which is that of about ten scans.
 */
const chargeWait = { share: 1 / 2, maxMs: 50 }

/** Synchronous scans, and the results of all scans. */
export function makeScanning(deps: Deps) {
  let inProgress = 0

  return {
    /** Waits up to `waitMs` for the result of a pending scan, or until `signal` is aborted. */
    async getScan(owner: Owner, kind: ScanKind, id: string, { waitMs = 0, signal = neverAborted } = {}): Promise<Scan> {
      const deadline = performance.now() + waitMs
      for (;;) {
        const leftMs = deadline - performance.now()
        if (leftMs <= 0 || signal.aborted) return getRecordedScan(deps, owner, kind, id)
        const done = new AbortController()
        try {
          // The wait begins before the scan is read: its result may arrive in between.
          const stop = AbortSignal.any([signal, done.signal])
          const notified = deps.resultWaiters.wait(id, Math.min(leftMs, pollMs), stop)
          const scan = await getRecordedScan(deps, owner, kind, id)
          if (scan.status !== 'pending') return scan
          await notified
        } finally {
          done.abort()
        }
      }
    },

    scanNow: (caller: Caller, content: Content, request: ScanRequest): Promise<AdmittedScan> =>
      scan(caller, {
        ...request,
        id: newScanId(deps.clock.now()),
        content,
        run: (latestCaller) => deps.scanner.scanContent(content, toScanOptions(latestCaller, request)),
      }),

    scanUrlNow: (caller: Caller, url: string, request: ScanRequest, signal: AbortSignal): Promise<AdmittedScan> =>
      scan(caller, {
        ...request,
        id: newScanId(deps.clock.now()),
        content: undefined,
        run: (latestCaller) =>
          deps.scanner.scanUrl(url, { ...toScanOptions(latestCaller, request), mode: 'sync', signal }),
      }),
  }

  /**
   * Scans, then records the charge and the result in one transaction. A crash before the transaction leaves nothing to
   * undo: nothing was charged.
   */
  async function scan(caller: Caller, syncScan: SyncScan): Promise<AdmittedScan> {
    const { kind, countsRequest, idempotency } = syncScan
    const firstScan = idempotency && (await findFirstScan(deps, caller, kind, idempotency))
    if (firstScan !== undefined) return { scan: firstScan, caller, refused: undefined }
    const startedAt = performance.now()
    inProgress++
    const result = await runScan(deps, caller, syncScan).finally(() => {
      inProgress--
    })
    const { share, maxMs } = chargeWait
    // While the engines have other scans to do, this wait keeps none of them idle.
    const mayWaitMs = inProgress < deps.fullLoad ? 0 : Math.min(maxMs, (performance.now() - startedAt) * share)
    const answer = await deps.gate.admit({
      keyDigest: caller.keyDigest,
      countsRequest,
      scan: result,
      restrictions: caller.restrictions,
      mayWaitMs,
      ...(idempotency === undefined ? {} : { idempotency }),
      // On the fast path the settings of the caller may be a second old.
      ...(countsRequest && kind === 'nsfw_image' ? { flagsSexy: caller.flagsSexy } : {}),
    })
    // The gate refuses here when the key was revoked or other scans took the last credits during the scan.
    const admitted = toAdmitted(caller, countsRequest, answer)
    if (answer.outcome === 'changed') {
      const refused = findKeyRefusal(answer.caller.restrictions, { action: 'scan', kind, address: syncScan.address })
      if (refused !== undefined) return { ...admitted, refused, scan: result }
      return scan(answer.caller, { ...syncScan, countsRequest: false })
    }
    if (answer.outcome === 'repeated' && idempotency !== undefined) {
      return { ...admitted, scan: await getFirstScan(deps, caller, kind, answer, idempotency) }
    }
    if (admitted.refused === undefined) deps.observeVerdict(kind, result.status, caller.isTest)
    return { ...admitted, scan: result }
  }
}

export type Scanning = ReturnType<typeof makeScanning>

/** The options of a scan, without the other properties of the caller and the request. */
const toScanOptions = (
  { accountId, isTest, flagsSexy }: Caller,
  { kind, contentName, abortWhenClientLeaves = () => neverAborted }: ScanRequest,
) => ({ kind, contentName, flagsSexy, accountId, isTest, abortWhenClientLeaves })

/**
 * Answers alike for every scan that the key may not read: no such scan, one of another account or of the other kind, an
 * identifier that is no UUID, and a test scan for a live key or the reverse.
 */
async function getRecordedScan(
  { scans }: Deps,
  { accountId, isTest }: Owner,
  kind: ScanKind,
  id: string,
): Promise<Scan> {
  const scan = isUuid(id) ? await scans.findScan(accountId, kind, id) : undefined
  if (scan !== undefined && isTestScan(scan) === isTest) return scan
  throw new Problem({ kind: 'validation', errors: { id: ['The job could not be found.'] } })
}

async function findFirstScan(deps: Deps, caller: Caller, kind: ScanKind, idempotency: Idempotency) {
  const { operation, key } = idempotency
  const first = await deps.repeats.findRepeat(caller.accountId, operation, key)
  return first && getFirstScan(deps, caller, kind, first, idempotency)
}

async function getFirstScan(
  deps: Deps,
  caller: Caller,
  kind: ScanKind,
  first: { scanId: string; fingerprint: string },
  idempotency: Idempotency,
): Promise<Scan> {
  const mismatch = findMismatch(first, idempotency)
  if (mismatch !== undefined) throw mismatch
  return getRecordedScan(deps, caller, kind, first.scanId)
}

/** Runs a scan to its result. Records a scan that fails by our own fault, without a charge, and throws. */
async function runScan(deps: Deps, caller: Caller, { id, kind, contentName, content, run }: SyncScan) {
  const base = { id, kind, mode: 'sync' as const, region: deps.region, contentName, createdAt: deps.clock.now() }
  try {
    const { status, signals, metadata, contentLength, contentType } = await run(caller)
    return { ...base, status, signals, metadata, contentLength, contentType, completedAt: deps.clock.now() }
  } catch (error) {
    if (error instanceof EngineBusy) throw new Problem({ kind: 'overloaded', retryAfterSeconds }, { cause: error })
    // A problem, such as a full disk, is a refusal and not a failed scan.
    if (error instanceof Problem) throw error
    // A failure that a test key asked for is no fault of the service.
    if (!caller.isTest) deps.reportFailure(error)
    deps.observeVerdict(kind, 'error', caller.isTest)
    const contentFields = await describeFailed(deps, caller, content)
    const failed = { status: 'error' as const, signals: ['Error:EngineFailed'], completedAt: deps.clock.now() }
    await deps.scans.recordFailure(caller.accountId, { ...base, ...contentFields, ...failed })
    if (!(error instanceof EngineDown)) throw error
    const detail = `The ${engineNames[kind]} engine did not answer. Nothing was charged; try again.`
    throw new Problem({ kind: 'engine-unavailable', detail }, { cause: error })
  }
}

async function describeFailed({ describe }: Deps, { accountId, isTest }: Caller, content: Content | undefined) {
  if (content === undefined) return { ...unknownContentFields, metadata: isTest ? testMark : null }
  const { contentType, hashes } = await describe(content, accountId)
  return { contentLength: content.bytes, contentType, metadata: { ...hashes, ...(isTest ? testMark : {}) } }
}

const neverAborted = new AbortController().signal

/** Wakes the requests of this process that wait for the result of a scan. */
export function makeResultWaiters() {
  const waiting = new Map<string, Set<() => void>>()

  return {
    notify(scanId: string) {
      for (const wake of waiting.get(scanId) ?? []) wake()
    },
    /** Resolves when `notify` is called for the scan, after `ms`, or when `signal` is aborted. */
    async wait(scanId: string, ms: number, signal: AbortSignal): Promise<void> {
      if (signal.aborted) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, ms)
      const wakers = waiting.get(scanId) ?? new Set()
      waiting.set(scanId, wakers.add(resolve))
      signal.addEventListener('abort', () => resolve(), { once: true })
      await promise
      clearTimeout(timer)
      wakers.delete(resolve)
      if (wakers.size === 0) waiting.delete(scanId)
    },
  }
}

export type ResultWaiters = ReturnType<typeof makeResultWaiters>
