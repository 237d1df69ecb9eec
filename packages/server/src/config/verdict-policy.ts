import type { Reader } from './readers.ts'

/** Votes that a verdict policy needs for a threat: 1 for `any`, 2 for `quorum 2`; undefined for other text. */
export function findQuorum(policy: string): number | undefined {
  if (policy === 'any') return 1
  const [, digit] = /^quorum ([2-9])$/.exec(policy) ?? []
  return digit === undefined ? undefined : Number(digit)
}

/** Reads how many engines must agree on a threat. */
export const verdictPolicy: Reader<string> = (value) => {
  if (findQuorum(value) === undefined) throw new Error('must be any, or quorum and a number from 2 to 9: quorum 2')
  return value
}
