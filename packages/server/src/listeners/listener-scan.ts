import { maxContentBytes } from '@assay/contract'
import type { Admission } from '../domain/accounts/admission.ts'
import type { Content } from '../domain/content/content.ts'
import type { Caller } from '../domain/ports/admission-gate.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import { Problem, type Refusal } from '../domain/problem.ts'
import type { Scan } from '../domain/scans/scan.ts'
import { distrustDegraded } from '../domain/scans/scanner.ts'
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
  const { admission, protocol, listener, maxBytes, address } = deps
  const keys = [deps.key]
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

/** The verdict of a listener on content. Many clients know only "found" and take every other answer for clean. */
export type Verdict = { is: 'clean' } | NotClean

/** `names` are those of the findings, or the reasons why there is no result. */
export type NotClean =
  | { is: 'threat'; names: string[] }
  /** The content itself is the reason why it was not scanned, or not completely. */
  | { is: 'not-scanned'; names: string[] }
  | Failure

/** The content is not the reason: an engine failed, or the service refused the scan. */
export type Failure = {
  is: 'failed'
  names: string[]
  sentence: string
  isRetryable: boolean
  retryAfterSeconds?: number
}

/** The verdict of a scan. Empty content has no scan and is clean, as with clamd. */
export function toVerdict(scan: Pick<Scan, 'status' | 'signals'> | undefined): Verdict {
  if (scan === undefined) return { is: 'clean' }
  // `Virus:Eicar-Test-Signature` is `Eicar-Test-Signature` to clients.
  const names = (scan.signals ?? []).map((signal) => signal.replace(/^(Virus|Error):/, ''))
  if (scan.status === 'threat') return { is: 'threat', names }
  return scan.status === 'clean' ? { is: 'clean' } : { is: 'not-scanned', names }
}

/** The verdict for an error that was thrown instead of a result. */
export function toErrorVerdict(error: unknown): NotClean {
  if (!(error instanceof Problem)) {
    return newFailure('InternalError', 'Internal error; nothing was charged.', { isRetryable: true })
  }
  const { refusal } = error
  if (refusal.kind === 'content-too-large') return { is: 'not-scanned', names: ['ContentTooLarge'] }
  const [reason, sentence] = failureTexts[refusal.kind] ?? ['Refused', `The request was rejected (${refusal.kind}).`]
  if (!('retryAfterSeconds' in refusal)) {
    return newFailure(reason, sentence, { isRetryable: retryableKinds.includes(refusal.kind) })
  }
  return { ...newFailure(reason, sentence, { isRetryable: true }), retryAfterSeconds: refusal.retryAfterSeconds }
}

export const newFailure = (reason: string, sentence: string, { isRetryable = false } = {}): Failure => ({
  is: 'failed',
  names: [reason],
  sentence,
  isRetryable,
})

const failureTexts: Partial<Record<Refusal['kind'], [reason: string, sentence: string]>> = {
  unauthenticated: ['InvalidKey', 'The API key behind this listener is not valid.'],
  'rate-limited': ['RateLimited', 'The rate limit is reached.'],
  'key-restricted': ['KeyRestricted', 'The API key behind this listener may not be used for this client.'],
  'out-of-credit': ['OutOfCredit', 'The account has no credits left.'],
  overloaded: ['Overloaded', 'Too many scans are waiting.'],
  unavailable: ['ServiceUnavailable', 'The service is temporarily unavailable; nothing was charged.'],
  'storage-full': ['StorageFull', 'There is no storage left for the content; nothing was charged.'],
  degraded: [
    'Degraded',
    'Malware scans are refused while ClamAV or its databases are missing or old; nothing was charged.',
  ],
  'outcome-unknown': ['ResultUnknown', 'The verdict could not be recorded; it may have been charged.'],
  'engine-unavailable': ['EngineFailed', 'The malware engine did not answer; nothing was charged.'],
}

const retryableKinds: Refusal['kind'][] = ['outcome-unknown', 'engine-unavailable']

/** The verdict for a client that does not send its content within the time limits. */
export const timeoutFailure = newFailure('RequestTimeout', 'The content arrived too slowly.')
/** The verdict when the service ends a connection before it has one. */
export const abortedFailure = newFailure('ServiceUnavailable', 'The service ended the connection.', {
  isRetryable: true,
})
/** The verdict for content whose end is missing. */
export const incompleteFailure = newFailure('InvalidRequest', 'The content is incomplete.')
/** The verdict for a client whose certificate is missing, not valid or not listed. */
export const refusedFailure = newFailure('InvalidCertificate', 'The client certificate is not accepted.')
/** The verdict for a connection beyond the limit. */
export const fullFailure = newFailure('Overloaded', 'Too many connections are open.', { isRetryable: true })

/** The name in an answer where clients expect the name of a finding. */
function toFindingName(verdict: NotClean): string {
  const name = toToken(verdict.names[0] || 'Unknown')
  return verdict.is === 'threat' ? name : `Assay.NotScanned.${name}`
}

/** Replaces characters that end or divide a line of either protocol; with a colon in it, go-clamd finds no status. */
const toToken = (name: string) => name.replaceAll(/[^\x21-\x7e]|[:;,"]/g, '_')

/** Whether clamd clients get an `ERROR` or a `FOUND` when the service failed. */
export type OnFailure = 'error' | 'found'

/**
 * The reply over clamd's protocol. Clients search for `OK`, `FOUND` and `ERROR` at the end of the reply, some anywhere
 * in it, so no sentence may contain the letters of the first two.
 */
export function toClamdReply(verdict: Verdict, onFailure: OnFailure, subject = 'stream'): string {
  if (verdict.is === 'clean') return `${subject}: OK`
  if (verdict.is !== 'failed' || onFailure === 'found') return `${subject}: ${toFindingName(verdict)} FOUND`
  const { sentence, isRetryable, retryAfterSeconds } = verdict
  const retry = retryAfterSeconds === undefined ? ' Try again.' : ` Try again in ${retryAfterSeconds} s.`
  return `${subject}: ${sentence}${isRetryable ? retry : ''} ERROR`
}

/** The answer over ICAP: a page in place of the message, or an error without one. */
export type IcapAnswer = { status: 200 | 500 | 503; headers: Record<string, string | undefined> }

/**
 * The answer over ICAP for content that is not clean. `reportsErrors`: the client tells errors from infections, as
 * Nextcloud does by X-Error-Code; to all others everything that is not clean is an infection.
 */
export function toIcapAnswer(verdict: NotClean, reportsErrors: boolean): IcapAnswer {
  if (verdict.is === 'threat' || (verdict.is === 'not-scanned' && !reportsErrors)) {
    return { status: 200, headers: toInfectionHeaders(verdict) }
  }
  const cause = reportsErrors ? { 'X-Error-Code': toErrorCode(verdict) } : toInfectionHeaders(verdict)
  if (verdict.is === 'not-scanned') {
    const detail = `The content could not be scanned completely (${verdict.names.map(toToken).join(', ')}).`
    return { status: 500, headers: { ...cause, 'X-Assay-Detail': detail } }
  }
  const { sentence, retryAfterSeconds } = verdict
  const retry = retryAfterSeconds === undefined ? undefined : String(retryAfterSeconds)
  const status = retryAfterSeconds === undefined ? 500 : 503
  return { status, headers: { ...cause, 'Retry-After': retry, 'X-Assay-Detail': sentence } }
}

/** The headers of c-icap and other servers. Type 0 is an infection, type 2 is content that could not be opened. */
export function toInfectionHeaders(verdict: NotClean): { 'X-Infection-Found': string; 'X-Virus-ID': string } {
  const name = toFindingName(verdict)
  const type = verdict.is === 'threat' ? 0 : 2
  return { 'X-Infection-Found': `Type=${type}; Resolution=2; Threat=${name};`, 'X-Virus-ID': name }
}

/** The codes with which Nextcloud calls a file unscannable; with any other code it refuses the upload. */
const errorCodes: Record<string, string> = {
  EncryptedContent: 'password_protected',
  ScanLimitExceeded: 'max_archive_layers_exceeded',
  UnsupportedContainer: 'decode_error',
  UnsupportedEncoding: 'decode_error',
  ContentTooLarge: 'decode_error',
  MalformedForm: 'decode_error',
}

function toErrorCode({ names: [reason = 'Unknown'] }: NotClean): string {
  const words = toToken(reason).replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')
  return errorCodes[reason] ?? words.toLowerCase()
}
