import { maxContentBytes } from '@assay/contract'
import type { Admission } from '../domain/accounts/admission.ts'
import type { Content } from '../domain/content/content.ts'
import type { Caller } from '../domain/ports/admission-gate.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import { Problem } from '../domain/problem.ts'
import type { Scan } from '../domain/scans/scan.ts'
import type { Scanning } from '../domain/scans/scanning.ts'
import type { Logger } from '../runtime/logger.ts'

type Deps = {
  /** `clamd` or `icap`, for the log. */
  protocol: string
  /** Of the account that stands behind the listener. */
  key: string
  admission: Admission
  scanning: Pick<Scanning, 'scanNow'>
  contents: ContentStore
  log: Logger
  countFailure(): void
}

/** One content on its way in. Whoever begins it lets go of it with `abort`, in the end too. */
export type ListenerScan = {
  /** A promise when there is something to wait for. Throws when it is refused, or larger than `maxBytes`. */
  write(chunk: Buffer): Promise<void> | undefined
  /** Undefined for no content at all: there is nothing to scan and nothing to charge. */
  finish(contentName: string | null): Promise<{ scan: Scan; content: Content } | undefined>
  /** What was written so far, unscanned: for giving it back. */
  surrender(): Promise<Content>
  abort(): Promise<void>
}

export const maxBytes = maxContentBytes.malware.sync
/** As over HTTP: larger ones are asked for at the gate before they are read. */
const maxFastPathBytes = 64 * 1024

/** The walk of POST /v1/malware/scan/file for those who speak something else than HTTP. */
export function makeListenerScans(deps: Deps) {
  const { admission } = deps
  const keys = [deps.key]

  return {
    /** Throws the refusal of the gate: no key, no request left, no credit. */
    async begin(): Promise<ListenerScan> {
      const startedAt = performance.now()
      const trusted = admission.findRecentCaller(keys)
      // Unset: not counted yet.
      let admitted: Caller | undefined
      let bytes = 0
      const writer = deps.contents.newWriter()
      const admit = async () => {
        const { caller, refused } = await admission.admitRequest(keys, true)
        if (refused !== undefined || caller === undefined) throw refused ?? new Problem({ kind: 'unauthenticated' })
        admitted = caller
        return caller
      }
      if (trusted === undefined) await told(admit)

      return {
        write(chunk) {
          bytes += chunk.length
          if (bytes > maxBytes) throw tooLarge()
          if (admitted !== undefined || bytes <= maxFastPathBytes) return writer.write(chunk)
          return told(admit).then(() => writer.write(chunk))
        },
        async finish(contentName) {
          if (bytes === 0 && admitted === undefined) await told(admit)
          const content = await writer.finish()
          if (bytes === 0) return undefined
          return told(async () => ({ scan: await scan(content, contentName), content }))
        },
        surrender: () => writer.finish(),
        abort: () => writer.abort(),
      }

      async function scan(content: Content, contentName: string | null): Promise<Scan> {
        const countsRequest = admitted === undefined
        const caller = admitted ?? (trusted as Caller)
        const order = { kind: 'malware' as const, contentName, countsRequest, idempotency: undefined }
        try {
          const { scan, refused } = await deps.scanning.scanNow(caller, content, order)
          if (refused !== undefined) throw refused
          report({ accountId: caller.accountId, scanId: scan.id, status: scan.status })
          return scan
        } catch (error) {
          // What failed before it came to the gate is counted there now; its refusal comes first.
          if (countsRequest && !isGates(error)) await admit()
          throw error
        }
      }

      /** The log tells of every end. */
      async function told<T>(work: () => Promise<T>): Promise<T> {
        try {
          return await work()
        } catch (error) {
          if (error instanceof Problem) report({ refused: error.refusal.kind })
          else {
            deps.countFailure()
            deps.log.error({ protocol: deps.protocol, err: error }, 'scan failed')
          }
          throw error
        }
      }

      function report(about: object) {
        const ms = Math.round((performance.now() - startedAt) * 10) / 10
        deps.log.info({ protocol: deps.protocol, ...about, ms }, 'scan')
      }
    },
  }
}

export type ListenerScans = ReturnType<typeof makeListenerScans>

const tooLarge = () =>
  new Problem({ kind: 'content-too-large', detail: `The content is larger than ${maxBytes / 1024 / 1024} MB.` })

const gateKinds = ['unauthenticated', 'rate-limited', 'out-of-credit']
const isGates = (error: unknown) => error instanceof Problem && gateKinds.includes(error.refusal.kind)
