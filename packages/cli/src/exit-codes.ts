/** Those of clamscan; 128 and the number of the signal for a run that was interrupted, as shells have it. */
export const exitCodes = { clean: 0, threat: 1, error: 2 } as const

export const toInterruptedCode = (signal: Signal): number => 128 + numbers[signal]

export type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

const numbers: Record<Signal, number> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }
