import { type Logger, pino } from 'pino'

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
      timestamp: toTimestamp,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: toLoggedError },
    },
    options.sync === true ? pino.destination({ dest: 2, sync: true }) : openBunchedOutput(),
  )
}

/**
 * Hands the lines of one turn of the event loop on together. One by one they would cost as much as a fifth of a ping:
 * the destination measures all that is waiting again with each line.
 */
function openBunchedOutput() {
  const output = pino.destination({ dest: 2, sync: false, minLength: 12_288, periodicFlush: 250 })
  let lines: string[] = []
  const handOn = () => {
    const bunch = lines.join('')
    lines = []
    if (bunch !== '') output.write(bunch)
  }
  process.on('exit', () => {
    handOn()
    output.flushSync()
  })
  return {
    write(line: string) {
      if (lines.length === 0) setImmediate(handOn)
      lines.push(line)
    },
  }
}

let stampedAt = 0
let stamp = ''

/** Many lines share a millisecond; its text is made once. */
function toTimestamp(): string {
  const now = Date.now()
  if (now !== stampedAt) {
    stampedAt = now
    stamp = `,"time":"${new Date(now).toISOString()}"`
  }
  return stamp
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
