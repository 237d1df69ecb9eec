import type { Content } from '../content/content.ts'
import type { FinalResult } from '../scans/scanner.ts'

type Known = Pick<Content, 'bytes' | 'sha256'>

/**
 * An outcome that another process wrote, or a throw: whatever is odd about it, what comes of that is never a verdict.
 * `known` is the content that it must be about; null where the other one has fetched it.
 */
export function checkRemoteResult(found: unknown, known: Known | null): FinalResult {
  if (!isFinalResult(found)) throw new Error('The outcome of a remote scan has not the form of one')
  const { status, signals, contentLength, metadata } = found
  const isEmpty = (signals ?? []).length === 0
  if ((status === 'clean') !== isEmpty)
    throw new Error(`The outcome of a remote scan is ${status} and contradicts itself`)
  // Whatever was scanned has a hash; of an address that yielded nothing there is only the reason.
  const sha256 = metadata?.hash_sha256
  if (known === null) {
    if (status !== 'error' && sha256 === undefined) throw new Error('The outcome of a remote scan is about no content')
  } else if (sha256 !== known.sha256 || contentLength !== known.bytes) {
    throw new Error('The outcome of a remote scan is about other content')
  }
  return found
}

function isFinalResult(found: unknown): found is FinalResult & { status: 'clean' | 'threat' | 'error' } {
  if (typeof found !== 'object' || found === null) return false
  const { status, signals, metadata, contentLength, contentType } = found as Record<string, unknown>
  return (
    (status === 'clean' || status === 'threat' || status === 'error') &&
    (signals === null || (Array.isArray(signals) && signals.every(isText))) &&
    (metadata === null || (typeof metadata === 'object' && Object.values(metadata as object).every(isText))) &&
    Number.isSafeInteger(contentLength) &&
    (contentLength as number) >= 0 &&
    isText(contentType)
  )
}

const isText = (value: unknown): value is string => typeof value === 'string'
