import type { Doubt } from '../ports/engines.ts'

/** What was found, and in which member of which container: `[]` is the content itself. */
export type Finding = { name: string; path: string[] }

export type Inspected = { findings: Finding[]; doubts: Doubt[] }

/** `doubts` stand beside findings, too: they are what is left when a finding is allowed. */
export type Verdict = { status: 'clean' | 'threat' | 'error'; signals: string[]; path: string[]; doubts: string[] }

export const maxSignals = 50
const maxNameLength = 200

/** One finding is enough for a threat; one doubt is enough for not being clean. */
export function decide({ findings, doubts: all }: Inspected, policy: { encryptedIs: 'error' | 'threat' }): Verdict {
  const doubts = [...new Set(all)].map((doubt) => `Error:${doubt}`)
  if (findings.length > 0) {
    const names = new Set(findings.map(({ name }) => `Virus:${name.slice(0, maxNameLength)}`))
    // The deepest place is the most exact one: a container's own finding repeats that of its member.
    const deepest = findings.reduce((best, { path }) => (path.length > best.length ? path : best), [] as string[])
    return { status: 'threat', signals: [...names].slice(0, maxSignals), path: deepest, doubts }
  }
  if (doubts.length === 0) return { status: 'clean', signals: [], path: [], doubts }
  if (policy.encryptedIs === 'threat' && all.includes('EncryptedContent')) {
    return { status: 'threat', signals: ['Virus:Heuristics.EncryptedContent'], path: [], doubts }
  }
  return { status: 'error', signals: doubts, path: [], doubts }
}
