import type { ScanKind, ScanMode } from '@assay/contract'
import { validate as isUuid } from 'uuid'
import { type Admitted, findCaller, findRefusal } from '../accounts/admission.ts'
import type { Content } from '../content/content.ts'
import type { Describer } from '../content/describe.ts'
import type { AdmissionGate, Answer, Caller } from '../ports/admission-gate.ts'
import type { Clock } from '../ports/clock.ts'
import { EngineDown } from '../ports/scan-engine.ts'
import type { ScanStore } from '../ports/scan-store.ts'
import { Problem } from '../problem.ts'
import type { MalwareScan } from './malware-scan.ts'
import type { NewScan, Scan } from './scan.ts'
import { newScanId } from './scan-id.ts'

type Deps = {
  scans: ScanStore
  gate: AdmissionGate
  malware: MalwareScan
  describe: Describer
  clock: Clock
  region: string
  /** Told of each scan that the engines could not answer. */
  reportFailure(error: unknown): void
  observeVerdict(kind: ScanKind, status: string): void
}

export function makeScanning(deps: Deps) {
  return {
    /** One answer for all that is not there: no job, another account's, the other kind, not even an identifier. */
    async getScan(accountId: string, kind: ScanKind, id: string): Promise<Scan> {
      const scan = isUuid(id) ? await deps.scans.findScan(accountId, kind, id) : undefined
      if (scan !== undefined) return scan
      throw new Problem({ kind: 'validation', errors: { id: ['The job could not be found.'] } })
    },

    /**
     * Scans while the caller waits. Charge, job and verdict are one transaction, after the scan: a crash before it has
     * accepted nothing, and there is nothing to undo or to give back.
     */
    async scanNow(
      caller: Caller,
      content: Content,
      { contentName, takesRequest }: { contentName: string | null; takesRequest: boolean },
    ): Promise<Admitted & { scan: Scan }> {
      const scan = await assess(caller, content, contentName)
      const answer = await deps.gate.ask({ keyDigest: caller.keyDigest, takesRequest, scan })
      // Refused when the key was revoked since it was last looked at, or other scans took the last credits.
      const refused = findRefusal(answer)
      if (refused === undefined) deps.observeVerdict(scan.kind, scan.status)
      return { scan, caller: toCaller(caller, answer, takesRequest), refused }
    },

    /** Honest until it is built: what is not scanned gets no verdict, no job and no charge. */
    refuse(kind: ScanKind, mode: ScanMode): never {
      const what = kind === 'malware' ? 'malware' : 'NSFW image'
      const detail = `This version has no ${mode === 'sync' ? '' : 'background '}${what} scans of this form. Nothing was charged.`
      throw new Problem({ kind: 'engine-unavailable', detail })
    },
  }

  async function assess(caller: Caller, content: Content, contentName: string | null): Promise<NewScan> {
    const scan = {
      id: newScanId(),
      kind: 'malware' as const,
      mode: 'sync' as const,
      region: deps.region,
      contentLength: content.bytes,
      contentName,
      createdAt: deps.clock.now(),
    }
    const { contentType, hashes } = await deps.describe(content)
    try {
      const { status, signals, metadata } = await deps.malware.assess(content, contentName)
      const completedAt = deps.clock.now()
      return { ...scan, contentType, status, signals, metadata: { ...hashes, ...metadata }, completedAt }
    } catch (error) {
      deps.reportFailure(error)
      deps.observeVerdict(scan.kind, 'error')
      const failed = { status: 'error' as const, signals: ['Error:EngineFailed'], completedAt: deps.clock.now() }
      await deps.scans.recordFailure(caller.accountId, { ...scan, contentType, ...failed, metadata: hashes })
      if (!(error instanceof EngineDown)) throw error
      const detail = 'The malware engine did not answer. Nothing was charged; try again.'
      throw new Problem({ kind: 'engine-unavailable', detail }, { cause: error })
    }
  }
}

/** A scan alone says nothing new of the rate window, which has its count from when the request came. */
function toCaller(before: Caller, answer: Answer, tookRequest: boolean): Caller | undefined {
  const caller = findCaller(answer)
  if (caller === undefined || tookRequest) return caller
  return { ...caller, requestsRemaining: before.requestsRemaining, resetsAt: before.resetsAt }
}

export type Scanning = ReturnType<typeof makeScanning>
