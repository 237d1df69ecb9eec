import { Problem } from '../../domain/problem.ts'
import type { Scan } from '../../domain/scans/scan.ts'

/**
 * The very lines of clamd: clients look for `OK`, `FOUND` and `ERROR` at their end, some anywhere in them. So no other
 * text of ours may have the letters of the first two.
 */
export function toScanReply(scan: Pick<Scan, 'status' | 'signals'> | undefined): string {
  if (scan === undefined || scan.status === 'clean') return 'stream: OK'
  const [signal = ''] = scan.signals ?? []
  const name = toName(signal)
  if (scan.status === 'threat') return `stream: ${name} FOUND`
  return toError(`Not scanned to the end, so not clean: ${name}.`)
}

const sizeLimitReply = 'INSTREAM size limit exceeded. ERROR'

/** Whatever was thrown instead of a verdict. */
export function toFaultReply(error: unknown): string {
  if (!(error instanceof Problem)) return toError('Internal failure; nothing was charged. Try again.')
  const { refusal } = error
  switch (refusal.kind) {
    case 'content-too-large':
      return sizeLimitReply
    case 'unauthenticated':
      return toError('The API key behind this listener is not valid.')
    case 'rate-limited':
      return toError(`The rate limit is reached. Try again in ${refusal.retryAfterSeconds} s.`)
    case 'out-of-credit':
      return toError('The account has no credits left.')
    case 'overloaded':
      return toError(`Too many scans wait already. Try again in ${refusal.retryAfterSeconds} s.`)
    case 'unavailable':
      return toError(
        `The service is away for a moment; nothing was charged. Try again in ${refusal.retryAfterSeconds} s.`,
      )
    case 'storage-full':
      return toError(
        `There is no room for the content; nothing was charged. Try again in ${refusal.retryAfterSeconds} s.`,
      )
    case 'outcome-unknown':
      return toError('The verdict could not be recorded; it may have been charged. Try again.')
    case 'engine-unavailable':
      return toError('The malware engine did not answer; nothing was charged. Try again.')
    default:
      return toError(`Refused (${refusal.kind}).`)
  }
}

const toError = (text: string) => `stream: ${text} ERROR`

/** `Virus:Eicar-Test-Signature` is `Eicar-Test-Signature` to clamd. On one line, whatever a rule is called. */
const toName = (signal: string) => signal.replace(/^(Virus|Error):/, '').replaceAll(/[^\x21-\x7e]/g, '_') || 'unnamed'
