import { hash } from 'node:crypto'
import { headers, maxKeyLength } from '@assay/contract'
import { Problem } from '../problem.ts'

/** As callers know it, also in errors. */
const { idempotencyKey: header } = headers

/** What is wrong with a key, as sentences. */
export const checkIdempotencyKey = (key: string): string[] =>
  key.length > 0 && key.length <= maxKeyLength && /^[\x20-\x7e]*$/.test(key)
    ? []
    : [`${header} must be 1 to ${maxKeyLength} visible ASCII characters.`]

/** What makes two requests the same: everything that was given, in a fixed order. */
export const toFingerprint = (given: (string | null)[]): string => hash('sha256', JSON.stringify(given))

/** The same key for something else is a mistake of the caller's, whichever of the two was meant. */
export function findMismatch(first: { fingerprint: string }, now: { fingerprint: string }): Problem | undefined {
  if (first.fingerprint === now.fingerprint) return undefined
  const error = `${header} was used for another request within the last 24 hours.`
  return new Problem({ kind: 'validation', errors: { [header]: [error] } })
}
