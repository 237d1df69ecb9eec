import { LRUCache } from 'lru-cache'
import type { AdmissionGate, Caller } from '../ports/admission-gate.ts'
import type { Clock } from '../ports/clock.ts'

const recentMs = 1000
/** Far more than can arrive at once in that time, so that hardly ever work is done for an answer that is then refused. */
const plenty = 500
const maxCallers = 10_000

/**
 * Callers who were let in a moment ago and have plenty left. Their small scans may begin before the gate is asked, which
 * then counts, charges and records in one go. Trust is for the work alone: no answer goes out that the gate has not let.
 */
export function makeRecentCallers({ clock }: { clock: Clock }) {
  const callers = new LRUCache<string, { caller: Caller; untilMs: number }>({ max: maxCallers })

  const note = (caller: Caller) => {
    // A test may ask to be refused at the gate, so its requests always come there first.
    const isRich = !caller.isTest && caller.requestsRemaining >= plenty && caller.creditRemaining >= plenty
    if (isRich) callers.set(caller.keyDigest, { caller, untilMs: clock.now().getTime() + recentMs })
    else callers.delete(caller.keyDigest)
  }

  return {
    find(keyDigest: string): Caller | undefined {
      const known = callers.get(keyDigest)
      return known !== undefined && clock.now().getTime() < known.untilMs ? known.caller : undefined
    },
    /** The same gate: what it says of anybody, to whomever, makes and ends trust in them. */
    watch: (gate: AdmissionGate): AdmissionGate => ({
      async ask(ask) {
        const answer = await gate.ask(ask)
        if (answer.outcome === 'unknown-key') callers.delete(ask.keyDigest)
        else note(answer.caller)
        return answer
      },
    }),
  }
}

export type RecentCallers = ReturnType<typeof makeRecentCallers>
