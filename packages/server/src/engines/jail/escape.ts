import type { Parser } from './policy.ts'

/** Called for each parser that the kernel killed because of a call that no honest parser makes. */
export type OnEscape = (parser: Parser) => void

/** The signal by which the filter kills a process. */
export const isEscape = (signal: NodeJS.Signals | string | null | undefined) => signal === 'SIGSYS'
