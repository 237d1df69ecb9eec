import { newCache } from '../new-cache.ts'
import type { AdmissionAnswer, AdmissionGate, Caller } from '../ports/admission-gate.ts'
import { Problem } from '../problem.ts'
import { findKeyRefusal, type KeyUse, toKeyDigest } from './keys.ts'

/** Which requests need credit: all, or scans alone. */
export type CreditGate = 'all' | 'scans'

/** The answer of the gate to a request: the caller, if the key is known, and the refusal, if there is one. */
export type Admitted = { caller: Caller | undefined; refused: Problem | undefined }

/**
 * Checks the key, the rate limit, the restrictions of the key and the credit, in this order. A refused caller is
 * returned too, because every response to a known caller has the headers about credit and rate.
 */
export function makeAdmission(deps: {
  gate: AdmissionGate
  creditGate: CreditGate
  recentCallers: Pick<RecentCallers, 'find'>
}) {
  return {
    /** `keys` are the values of X-API-Key in the request. Two different values count as no key. */
    async admitRequest(keys: readonly string[], use: KeyUse): Promise<Admitted> {
      const key = findKey(keys)
      if (key === undefined) return { caller: undefined, refused: new Problem({ kind: 'unauthenticated' }) }
      return admitDigest(toKeyDigest(key), use)
    },
    admitDigest,
    /** Finds a caller on the fast path: the scan may begin before the gate answers. */
    findRecentCaller(keys: readonly string[], use: KeyUse): Caller | undefined {
      const key = findKey(keys)
      const caller = key === undefined ? undefined : deps.recentCallers.find(toKeyDigest(key))
      // The restrictions may have been changed since: only the gate refuses.
      return caller && findKeyRefusal(caller.restrictions, use) === undefined ? caller : undefined
    },
  }

  async function admitDigest(keyDigest: string, use: KeyUse): Promise<Admitted> {
    const answer = await deps.gate.admit({ keyDigest, countsRequest: true })
    const refused = findRefusal(answer)
    if (answer.outcome === 'unknown-key' || refused !== undefined) return { caller: findCaller(answer), refused }
    const { caller } = answer
    const restricted = findKeyRefusal(caller.restrictions, use)
    if (restricted !== undefined) return { caller, refused: restricted }
    const isScan = use.action === 'scan' || use.action === 'submit'
    const isOutOfCredit = !caller.isTest && caller.creditRemaining === 0 && (isScan || deps.creditGate === 'all')
    return { caller, refused: isOutOfCredit ? new Problem({ kind: 'out-of-credit' }) : undefined }
  }
}

export type Admission = ReturnType<typeof makeAdmission>

/**
 * Converts the answer of the gate to a scan. When the gate counted the request before the scan (`countsRequest` is
 * false), only its first answer, in `countedCaller`, knows the rate window.
 */
export function toAdmitted(countedCaller: Caller, countsRequest: boolean, answer: AdmissionAnswer): Admitted {
  const caller = findCaller(answer)
  const { requestsRemaining, resetsAt } = countedCaller
  const isCountedBefore = caller !== undefined && !countsRequest
  return { caller: isCountedBefore ? { ...caller, requestsRemaining, resetsAt } : caller, refused: findRefusal(answer) }
}

const findCaller = (answer: AdmissionAnswer): Caller | undefined =>
  answer.outcome === 'unknown-key' ? undefined : answer.caller

function findRefusal(answer: AdmissionAnswer): Problem | undefined {
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
/** Far more requests than arrive within `recentMs`, so that the gate hardly ever refuses a scan after it ran. */
const minRemaining = 500
const maxCallers = 10_000

/**
 * Callers that the gate admitted within the last second and that have at least 500 requests and credits left. Their
 * small scans begin before the call to the gate, which then counts, charges and records in one transaction. The
 * response always waits for the gate. `readMs` reads a clock that nobody sets.
 */
export function makeRecentCallers(readMs = () => performance.now()) {
  const callers = newCache<{ caller: Caller; untilMs: number }>(maxCallers)

  const note = (keyDigest: string, caller: Caller | undefined) => {
    // A request with a test key can ask for a refusal, so the gate always sees it first.
    const hasReserve =
      caller?.isTest === false && caller.requestsRemaining >= minRemaining && caller.creditRemaining >= minRemaining
    if (hasReserve) callers.set(keyDigest, { caller, untilMs: readMs() + recentMs })
    else callers.delete(keyDigest)
  }

  return {
    find(keyDigest: string): Caller | undefined {
      const entry = callers.get(keyDigest)
      return entry !== undefined && readMs() < entry.untilMs ? entry.caller : undefined
    },
    /** Adds the caller of an answer to the recent ones, or removes it; undefined when the key is not known any more. */
    note,
    /** Wraps the gate: each of its answers adds the caller to the recent ones or removes it. */
    watch: (gate: AdmissionGate): AdmissionGate => ({
      async admit(call) {
        const answer = await gate.admit(call)
        note(call.keyDigest, findCaller(answer))
        return answer
      },
    }),
  }
}

export type RecentCallers = ReturnType<typeof makeRecentCallers>
