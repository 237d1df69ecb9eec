import type { Config } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import type { OnEscape } from '../engines/jail/escape.ts'
import { listMissingParts } from '../engines/jail/jail.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'

/**
 * Finds out which parts of the jail of the parsers this kernel lacks. Throws if the operator requires all of them;
 * otherwise warns, and `findFault` repeats it for `/readyz`.
 */
export function checkSandbox({ sandbox }: Pick<Config, 'sandbox'>, log: Logger) {
  const fault = findSandboxFault()
  if (fault !== undefined && sandbox === 'required') {
    throw new OperatorMistake(`${fault} Use a kernel that has it, or set ASSAY_SANDBOX=auto to accept that.`)
  }
  if (fault !== undefined) log.warn(`the sandbox of the engines is incomplete: ${fault}`)
  return { findFault: () => fault }
}

/** A sentence about each part that is missing, or undefined. */
export const findSandboxFault = (): string | undefined => listMissingParts().join(' ') || undefined

/** Logs and counts each parser that the kernel killed because of a call that no honest parser makes. */
export function makeEscapeReport(metrics: Pick<Metrics, 'countEscape'>, log: Logger): OnEscape {
  return (parser) => {
    metrics.countEscape(parser)
    log.error(
      { parser },
      'the kernel killed a parser because of a forbidden system call; content may have taken it over',
    )
  }
}
