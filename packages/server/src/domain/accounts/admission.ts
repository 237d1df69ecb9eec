import type { AdmissionGate, Answer, Caller } from '../ports/admission-gate.ts'
import { Problem } from '../problem.ts'
import { toKeyDigest } from './secrets.ts'

export type CreditGate = 'all' | 'scans'

/** What the gate found out about a request: who is calling, and whether it may go on. */
export type Admitted = { caller: Caller | undefined; refused: Problem | undefined }

/**
 * Authentication, then the rate window, then credit: the order of the interface. The caller comes back even with a
 * refusal, because answers to known callers carry their credit and rate headers.
 */
export function makeAdmission(deps: { gate: AdmissionGate; creditGate: CreditGate }) {
  return {
    /** `keys` are the values of X-API-Key as they came: two that differ are no key at all. */
    async admitRequest(keys: readonly string[], isScan: boolean): Promise<Admitted> {
      const [key] = keys
      if (key === undefined || key === '' || keys.some((other) => other !== key)) return unauthenticated()
      return toAdmitted(await deps.gate.ask({ keyDigest: toKeyDigest(key), takesRequest: true }), isScan)
    },
  }

  function toAdmitted(answer: Answer, isScan: boolean): Admitted {
    if (answer.outcome === 'unknown-key') return unauthenticated()
    const { caller } = answer
    if (answer.outcome === 'rate-limited') {
      return { caller, refused: new Problem({ kind: 'rate-limited', retryAfterSeconds: answer.retryAfterSeconds }) }
    }
    const gated = isScan || deps.creditGate === 'all'
    const broke = answer.outcome === 'out-of-credit' || caller.creditRemaining === 0
    return { caller, refused: gated && broke ? new Problem({ kind: 'out-of-credit' }) : undefined }
  }
}

export type Admission = ReturnType<typeof makeAdmission>

const unauthenticated = (): Admitted => ({ caller: undefined, refused: new Problem({ kind: 'unauthenticated' }) })
