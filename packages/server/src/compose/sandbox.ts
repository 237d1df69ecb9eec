import type { Config } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { listMissingParts } from '../engines/jail/jail.ts'
import { type OnEscape, policies } from '../engines/jail/policy.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'

/**
 * Finds out which parts of the jail of the parsers this kernel lacks. Throws if the operator requires all of them;
 * otherwise warns, and `findFault` and `findNote` repeat it for `/readyz`.
 */
export function checkSandbox({ sandbox }: Pick<Config, 'sandbox'>, log: Logger) {
  const { fault, note } = describeSandbox()
  const missing = [fault, note].filter((text) => text !== undefined).join(' ')
  if (missing !== '' && sandbox === 'required') {
    throw new OperatorMistake(`${missing} Use a kernel that has it, or set ASSAY_SANDBOX=auto to accept that.`)
  }
  if (missing !== '') log.warn(`the sandbox of the engines is incomplete: ${missing}`)
  return { findFault: () => fault, findNote: () => note }
}

/** Sentences about the parts that are missing: `fault` weakens the jail, `note` hardly does. */
export function describeSandbox(): { fault: string | undefined; note: string | undefined } {
  const { faults, notes } = listMissingParts()
  return { fault: faults.join(' ') || undefined, note: notes.join(' ') || undefined }
}

/** Logs and counts each parser that the kernel killed because of a call that no honest parser makes. */
export function makeEscapeReport(metrics: Pick<Metrics, 'countEscape'>, log: Logger): OnEscape {
  // Prometheus sees an increase only between two samples, so each series begins with 0.
  for (const parser of Object.keys(policies)) metrics.countEscape(parser, 0)
  return (parser) => {
    metrics.countEscape(parser)
    log.error(
      { parser },
      'the kernel killed a parser because of a forbidden system call; content may have taken it over',
    )
  }
}
