import type { Config } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { listMissingParts } from '../engines/jail/jail.ts'
import type { Logger } from '../runtime/logger.ts'

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
