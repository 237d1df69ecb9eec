import { type Logger, pino, stdTimeFunctions } from 'pino'

export type { Logger }

/**
 * JSON lines on standard error, so that standard output belongs to what commands print. What goes in is chosen at each
 * call; nothing dumps headers, keys or content.
 */
export function makeLogger(options: { level: string; region: string; sync?: boolean }): Logger {
  return pino(
    {
      level: options.level,
      base: { region: options.region },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: toLoggedError },
    },
    // Buffered: a write for each request would cost more than most requests do.
    pino.destination(
      options.sync === true ? { dest: 2, sync: true } : { dest: 2, sync: false, minLength: 4096, periodicFlush: 500 },
    ),
  )
}

/** Only what tells the cause. Drivers hang connections, parameters and row values on their errors. */
function toLoggedError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code } = error as { code?: unknown }
  return {
    type: error.name,
    message: error.message,
    stack: error.stack,
    ...(code === undefined ? {} : { code }),
    ...(error.cause === undefined ? {} : { cause: toLoggedError(error.cause) }),
  }
}
