import { Problem } from '../../domain/problem.ts'
import type { Scan } from '../../domain/scans/scan.ts'

export type Decision =
  | { is: 'pass' }
  | { is: 'threat'; name: string; reference: string }
  /** It is the content's own doing that it was not scanned, or not all of it. */
  | { is: 'unscanned'; name: string; reference: string }
  /** It is not the content's doing: the proxy's own policy for services that fail says what happens. */
  | { is: 'failed'; status: 500 | 503; sentence: string; retryAfterSeconds?: number }

export function toDecision({ id, status, signals }: Pick<Scan, 'id' | 'status' | 'signals'>): Decision {
  if (status === 'clean') return { is: 'pass' }
  const name = (signals ?? []).map((signal) => signal.replace(/^(Virus|Error):/, '')).join(', ')
  return { is: status === 'threat' ? 'threat' : 'unscanned', name, reference: id }
}

/** Whatever was thrown instead of a verdict. */
export function toFailure(error: unknown): Decision & { is: 'failed' } {
  const refusal = error instanceof Problem ? error.refusal : undefined
  switch (refusal?.kind) {
    case 'rate-limited':
      return busy('The rate limit is reached.', refusal.retryAfterSeconds)
    case 'overloaded':
      return busy('Too many scans wait already.', refusal.retryAfterSeconds)
    case 'unavailable':
      return busy('The service is away for a moment; nothing was charged.', refusal.retryAfterSeconds)
    case 'storage-full':
      return busy('There is no room for the content; nothing was charged.', refusal.retryAfterSeconds)
    case 'outcome-unknown':
      return failed('The verdict could not be recorded; it may have been charged.')
    case 'out-of-credit':
      return failed('The account has no credits left.')
    case 'unauthenticated':
      return failed('The API key behind this listener is not valid.')
    case 'engine-unavailable':
      return failed('The malware engine did not answer; nothing was charged.')
    default:
      return failed('Internal failure; nothing was charged.')
  }
}

const failed = (sentence: string) => ({ is: 'failed' as const, status: 500 as const, sentence })
const busy = (sentence: string, retryAfterSeconds: number) => ({
  ...{ is: 'failed' as const, status: 503 as const },
  ...{ sentence, retryAfterSeconds },
})
