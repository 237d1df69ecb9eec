import { Problem, type Refusal } from '../domain/problem.ts'
import type { Scan } from '../domain/scans/scan.ts'

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

type Result = Pick<Scan, 'status' | 'signals'>

/** The verdict of a scan. Empty content has no scan and is clean, as with clamd. */
export function toVerdict(scan: Result | undefined): Verdict {
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
  const [reason, sentence] = failures[refusal.kind] ?? ['Refused', `The request was rejected (${refusal.kind}).`]
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

const failures: Partial<Record<Refusal['kind'], [reason: string, sentence: string]>> = {
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

type Headers = Record<string, string | undefined>

/** The answer over ICAP: a page in place of the message, or an error without one. */
export type IcapAnswer = { status: 200 | 500 | 503; headers: Headers }

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
