import type { Expectation } from './form.ts'

type Verdict = { status: string; signals: string[] }

const error = 'error'

/** Verdicts that an expectation allows for a sample with EICAR and for one with a harmless text. */
const allowed: Record<Expectation, { eicar: string[]; harmless: string[]; signal?: string }> = {
  opened: { eicar: ['threat'], harmless: ['clean'] },
  ambiguous: { eicar: ['threat', error], harmless: ['clean', error] },
  damaged: { eicar: ['threat', error], harmless: [error] },
  reported: { eicar: ['threat'], harmless: ['threat'] },
  encrypted: { eicar: [error], harmless: [error], signal: 'Error:EncryptedContent' },
  unopened: { eicar: [error], harmless: [error], signal: 'Error:UnsupportedContainer' },
}

/** Describes how a verdict differs from the expectation; undefined when it does not. */
export function findFault(
  expectation: Expectation,
  payload: 'eicar' | 'harmless',
  { status, signals }: Verdict,
): string | undefined {
  const rule = allowed[expectation]
  const given = [status, ...signals].join(' ')
  if (!rule[payload].includes(status)) return `${given} instead of ${rule[payload].join(' or ')}`
  if (rule.signal !== undefined && !signals.includes(rule.signal)) return `${given} instead of ${rule.signal}`
  return undefined
}
