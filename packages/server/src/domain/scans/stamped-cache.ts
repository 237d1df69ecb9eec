import { LRUCache } from 'lru-cache'
import type { Verdict } from './verdict.ts'

/**
 * Verdicts on content that was seen before. A verdict counts only under the very engines and signatures that gave it:
 * each entry carries their stamp. Errors are not kept: the next try may go better.
 */
export function makeVerdictCache({ entries }: { entries: number }) {
  const cache = entries === 0 ? undefined : new LRUCache<string, { stamp: string; verdict: Verdict }>({ max: entries })

  return {
    find(sha256: string, stamp: string): Verdict | undefined {
      const entry = cache?.get(sha256)
      return entry?.stamp === stamp ? entry.verdict : undefined
    },
    keep(sha256: string, stamp: string, verdict: Verdict) {
      if (verdict.status !== 'error') cache?.set(sha256, { stamp, verdict })
    },
  }
}

export type VerdictCache = ReturnType<typeof makeVerdictCache>
