/** `degraded` still serves what it can; `unavailable` should get no traffic. */
export type Health = { status: 'ready' | 'degraded' | 'unavailable'; reasons: string[]; checks: Record<string, string> }

export type Check = {
  name: string
  /** Without it nothing can be served. */
  vital: boolean
  /** A sentence about what is wrong, or undefined when all is well. Throwing counts as wrong, too. */
  findFault(): Promise<string | undefined>
}

export function makeReadiness(deps: { checks: Check[]; timeoutMs: number }) {
  let stopping = false

  return {
    /** Red before the socket closes, so that balancers look elsewhere while running requests end. */
    startStopping() {
      stopping = true
    },
    isStopping: () => stopping,
    async check(): Promise<Health> {
      const faults = await Promise.all(deps.checks.map((check) => findFault(check, deps.timeoutMs)))
      const reasons = faults.filter((fault) => fault !== undefined)
      if (stopping) reasons.unshift('The service is stopping.')
      const vitalFault = deps.checks.some((check, i) => check.vital && faults[i] !== undefined)
      return {
        status: stopping || vitalFault ? 'unavailable' : reasons.length > 0 ? 'degraded' : 'ready',
        reasons,
        checks: Object.fromEntries(deps.checks.map(({ name }, i) => [name, faults[i] === undefined ? 'ok' : 'fault'])),
      }
    },
  }
}

export type Readiness = ReturnType<typeof makeReadiness>

async function findFault(check: Check, timeoutMs: number): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`The check of the ${check.name} took more than ${timeoutMs} ms.`), timeoutMs)
  })
  try {
    return await Promise.race([check.findFault(), late])
  } catch {
    // What exactly is in the log of the part; strangers may read this page.
    return `The ${check.name} does not answer.`
  } finally {
    clearTimeout(timer)
  }
}
