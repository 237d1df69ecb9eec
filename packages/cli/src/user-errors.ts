import { toInterruptedCode } from './exit-codes.ts'

/** An error that the user can fix. `message` is a sentence that says how. */
export class UserError extends Error {
  override readonly name = 'UserError'
}

/** The user pressed Ctrl-C at a prompt. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled'
  readonly exitCode = toInterruptedCode('SIGINT')
}

export const toMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))
