import { maxContentBytes } from '@assay/contract'
import type { Admission } from '../domain/accounts/admission.ts'
import type { Content } from '../domain/content/content.ts'
import type { Caller } from '../domain/ports/admission-gate.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import { Problem } from '../domain/problem.ts'
import { distrustDegraded } from '../domain/scans/degradation.ts'
import type { Scan } from '../domain/scans/scan.ts'
import type { Scanning } from '../domain/scans/scanning.ts'
import type { Logger } from '../runtime/logger.ts'

type Deps = {
  /** The protocol for the log: `clamd` or `icap`. */
  protocol: string
  /** The name of the listener, for the log. */
  listener: string
  /** Content over this size is not scanned. */
  maxBytes: number
  /** API key of the account that the scans of this listener are charged to. */
  key: string
  /** Address of the client, which the key may be restricted to. */
  address: string
  admission: Admission
  scanning: Pick<Scanning, 'scanNow'>
  contents: ContentStore
  log: Logger
  countFailure(): void
}

/** The scan of one content that is being received. The caller ends it with `abort`, also after `finish`. */
export type ListenerScan = {
  /** Returns a promise when the caller must wait. Throws when the scan is rejected or larger than `maxBytes`. */
  write(chunk: Buffer): Promise<void> | undefined
  /** Scans the content. Returns undefined for empty content, which is neither scanned nor charged. */
  finish(contentName: string | null): Promise<{ scan: Scan; content: Content } | undefined>
  /** Returns the content that was written so far without scanning it, to send it back. */
  takeContent(): Promise<Content>
  abort(): Promise<void>
}

/** The most that a listener can be set to scan. */
export const mostBytes = maxContentBytes.malware.sync
/** As over HTTP, larger content asks the admission gate before it is received. */
const maxFastPathBytes = 1024 * 1024

/** Does for other protocols what POST /v1/malware/scan/file does for HTTP: admission, content, scan, charge. */
export function makeListenerScans(deps: Deps) {
  const { admission, protocol, listener, maxBytes } = deps
  const keys = [deps.key]
  const { address } = deps
  const use = { action: 'scan', kind: 'malware', address } as const

  return {
    maxBytes,
    /** Starts a scan. Throws when admission rejects it: an invalid or restricted key, the rate limit, no credits. */
    async begin(): Promise<ListenerScan> {
      const startedAt = performance.now()
      const recentCaller = admission.findRecentCaller(keys, use)
      // Undefined while the request is not yet counted against the rate limit.
      let admitted: Caller | undefined
      let bytes = 0
      const admit = async () => {
        const { caller, refused } = await admission.admitRequest(keys, use)
        if (refused !== undefined || caller === undefined) throw refused ?? new Problem({ kind: 'unauthenticated' })
        admitted = caller
        return caller
      }
      const { accountId } = recentCaller ?? (await withLog(admit))
      const writer = deps.contents.newWriter({ accountId })

      return {
        write(chunk) {
          bytes += chunk.length
          if (bytes > maxBytes) throw newTooLarge(maxBytes)
          if (admitted !== undefined || bytes <= maxFastPathBytes) return writer.write(chunk)
          return withLog(admit).then(() => writer.write(chunk))
        },
        async finish(contentName) {
          if (bytes === 0 && admitted === undefined) await withLog(admit)
          const content = await writer.finish()
          if (bytes === 0) return undefined
          return withLog(async () => ({ scan: await scan(content, contentName), content }))
        },
        takeContent: () => writer.finish(),
        abort: () => writer.abort(),
      }

      async function scan(content: Content, contentName: string | null): Promise<Scan> {
        const countsRequest = admitted === undefined
        const caller = admitted ?? (recentCaller as Caller)
        const scanRequest = { kind: use.kind, address, contentName, countsRequest, idempotency: undefined }
        try {
          const { scan, refused } = await deps.scanning.scanNow(caller, content, scanRequest)
          if (refused !== undefined) throw refused
          report({ accountId: caller.accountId, scanId: scan.id, status: scan.status })
          return distrustDegraded(scan)
        } catch (error) {
          // A request on the fast path that failed before its charge is counted now; a refusal takes precedence.
          if (countsRequest && !isRefusedByAdmission(error)) await admit()
          throw error
        }
      }

      /** Runs `work` and logs its failure. */
      async function withLog<T>(work: () => Promise<T>): Promise<T> {
        try {
          return await work()
        } catch (error) {
          if (error instanceof Problem) report({ refused: error.refusal.kind })
          else {
            deps.countFailure()
            deps.log.error({ protocol, listener, err: error }, 'scan failed')
          }
          throw error
        }
      }

      function report(fields: object) {
        const ms = Math.round((performance.now() - startedAt) * 10) / 10
        deps.log.info({ protocol, listener, ...fields, ms }, 'scan')
      }
    },
  }
}

export type ListenerScans = ReturnType<typeof makeListenerScans>

const newTooLarge = (maxBytes: number) =>
  new Problem({ kind: 'content-too-large', detail: `The content is larger than ${maxBytes / 1024 / 1024} MB.` })

const admissionKinds = ['unauthenticated', 'rate-limited', 'key-restricted', 'out-of-credit']
const isRefusedByAdmission = (error: unknown) => error instanceof Problem && admissionKinds.includes(error.refusal.kind)
