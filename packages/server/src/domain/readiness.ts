/** A `degraded` service still serves some requests; an `unavailable` one should get no traffic. */
export type Health = {
  status: 'ready' | 'degraded' | 'unavailable'
  reasons: string[]
  checks: Record<string, string>
  /** The sentence of each check that failed. */
  faults: Record<string, string>
}

export type Check = {
  name: string
  /** Nothing can be served while this check fails. */
  vital: boolean
  /** Returns a sentence about the fault, or undefined. A check that throws has failed too. */
  findFault(): Promise<string | undefined>
  /** Returns a sentence that operators should know while there is no fault, or undefined. */
  findNote?(): string | undefined
}

export function makeReadiness(deps: { checks: Check[]; timeoutMs: number }) {
  const stopping = new AbortController()

  return {
    /** Makes `check` fail before the socket closes, so that balancers choose other nodes while requests finish. */
    startStopping: () => stopping.abort(),
    /** Aborted from `startStopping` on. */
    stopping: stopping.signal,
    async check(): Promise<Health> {
      const faults = await Promise.all(deps.checks.map((check) => findFault(check, deps.timeoutMs)))
      const reasons = faults.filter((fault) => fault !== undefined)
      if (stopping.signal.aborted) reasons.unshift('The service is stopping.')
      const vitalFault = deps.checks.some((check, i) => check.vital && faults[i] !== undefined)
      return {
        status: stopping.signal.aborted || vitalFault ? 'unavailable' : reasons.length > 0 ? 'degraded' : 'ready',
        reasons,
        checks: Object.fromEntries(deps.checks.map((check, i) => [check.name, toState(check, faults[i])])),
        faults: Object.fromEntries(
          deps.checks.flatMap(({ name }, i) => (faults[i] === undefined ? [] : [[name, faults[i]]])),
        ),
      }
    },
  }
}

export type Readiness = ReturnType<typeof makeReadiness>

function toState(check: Check, fault: string | undefined): string {
  if (fault !== undefined) return 'fault'
  const note = check.findNote?.()
  return note === undefined ? 'ok' : `ok. ${note}`
}

async function findFault(check: Check, timeoutMs: number): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`The check of the ${check.name} took more than ${timeoutMs} ms.`), timeoutMs)
  })
  try {
    return await Promise.race([check.findFault(), timeout])
  } catch {
    // The response of /readyz is public, so it does not show the error. The part that failed logs it.
    return `The ${check.name} does not answer.`
  } finally {
    clearTimeout(timer)
  }
}
