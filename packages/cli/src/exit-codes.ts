/** Exit codes of clamscan. An interrupted run exits with 128 plus the number of the signal, as in shells. */
export const exitCodes = { clean: 0, threat: 1, error: 2 } as const

export const toInterruptedCode = (signal: Signal): number => 128 + numbers[signal]

export type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

const numbers: Record<Signal, number> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }
