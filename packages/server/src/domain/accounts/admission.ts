import { LRUCache } from 'lru-cache'
import type { AdmissionGate, Answer, Caller } from '../ports/admission-gate.ts'
import type { Clock } from '../ports/clock.ts'
import { Problem } from '../problem.ts'
import { toKeyDigest } from './secrets.ts'

export type CreditGate = 'all' | 'scans'

/** What the gate found out about a request: who is calling, and whether it may go on. */
export type Admitted = { caller: Caller | undefined; refused: Problem | undefined }

/**
 * Authentication, then the rate window, then credit: the order of the interface. The caller comes back even with a
 * refusal, because answers to known callers carry their credit and rate headers.
 */
export function makeAdmission(deps: {
  gate: AdmissionGate
  creditGate: CreditGate
  recentCallers: Pick<RecentCallers, 'find'>
}) {
  return {
    /** `keys` are the values of X-API-Key as they came: two that differ are no key at all. */
    async admitRequest(keys: readonly string[], isScan: boolean): Promise<Admitted> {
      const key = findKey(keys)
      if (key === undefined) return { caller: undefined, refused: new Problem({ kind: 'unauthenticated' }) }
      return admitDigest(toKeyDigest(key), isScan)
    },
    admitDigest,
    /** Whom work may be begun for before the gate is asked. */
    findRecentCaller(keys: readonly string[]): Caller | undefined {
      const key = findKey(keys)
      return key === undefined ? undefined : deps.recentCallers.find(toKeyDigest(key))
    },
  }

  async function admitDigest(keyDigest: string, isScan: boolean): Promise<Admitted> {
    const answer = await deps.gate.ask({ keyDigest, countsRequest: true })
    const refused = findRefusal(answer)
    if (answer.outcome === 'unknown-key' || refused !== undefined) return { caller: findCaller(answer), refused }
    const { caller } = answer
    const isBroke = !caller.isTest && caller.creditRemaining === 0 && (isScan || deps.creditGate === 'all')
    return { caller, refused: isBroke ? new Problem({ kind: 'out-of-credit' }) : undefined }
  }
}

export type Admission = ReturnType<typeof makeAdmission>

export const findCaller = (answer: Answer): Caller | undefined =>
  answer.outcome === 'unknown-key' ? undefined : answer.caller

/** A scan alone says nothing new of the rate window, which has its count from when the request came. */
export function toLaterCaller(before: Caller, answer: Answer): Caller | undefined {
  const caller = findCaller(answer)
  if (caller === undefined) return undefined
  return { ...caller, requestsRemaining: before.requestsRemaining, resetsAt: before.resetsAt }
}

export function findRefusal(answer: Answer): Problem | undefined {
  switch (answer.outcome) {
    case 'admitted':
    case 'repeated':
    case 'changed':
      return undefined
    case 'unknown-key':
      return new Problem({ kind: 'unauthenticated' })
    case 'rate-limited':
      return new Problem({ kind: 'rate-limited', retryAfterSeconds: answer.retryAfterSeconds })
    case 'out-of-credit':
      return new Problem({ kind: 'out-of-credit' })
  }
}

function findKey(keys: readonly string[]): string | undefined {
  const [key] = keys
  return key === undefined || key === '' || keys.some((other) => other !== key) ? undefined : key
}

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
