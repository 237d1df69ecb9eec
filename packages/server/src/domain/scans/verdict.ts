import type { Doubt } from '../ports/scan-engine.ts'

/** What was found, and in which member of which container: `[]` is the content itself. */
export type Finding = { name: string; path: string[] }

export type Inspected = { findings: Finding[]; doubts: Doubt[] }

export type Verdict = { status: 'clean' | 'threat' | 'error'; signals: string[]; path: string[] }

const maxSignals = 50
const maxNameLength = 200

/** One finding is enough for a threat; one doubt is enough for not being clean. */
export function decide({ findings, doubts }: Inspected, policy: { encryptedIs: 'error' | 'threat' }): Verdict {
  if (findings.length > 0) {
    const names = new Set(findings.map(({ name }) => `Virus:${name.slice(0, maxNameLength)}`))
    // The deepest place is the most exact one: a container's own finding repeats that of its member.
    const deepest = findings.reduce((best, { path }) => (path.length > best.length ? path : best), [] as string[])
    return { status: 'threat', signals: [...names].slice(0, maxSignals), path: deepest }
  }
  if (doubts.length === 0) return { status: 'clean', signals: [], path: [] }
  if (policy.encryptedIs === 'threat' && doubts.includes('EncryptedContent')) {
    return { status: 'threat', signals: ['Virus:Heuristics.EncryptedContent'], path: [] }
  }
  return { status: 'error', signals: [...new Set(doubts)].map((doubt) => `Error:${doubt}`), path: [] }
}
