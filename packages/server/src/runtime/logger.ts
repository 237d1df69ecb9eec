import { type DestinationStream, type Logger, pino } from 'pino'
import { waitAtMost } from './clock.ts'
import { hideCredentials } from './hide-credentials.ts'
import { toTextLine } from './text-lines.ts'

export type { Logger }

/** The log line of a request. It contains no header, query or body. */
export type RequestLine = {
  traceId: string
  method: string
  path: string
  status: number
  ms: number
  accountId: string | undefined
}

/** `format` is `text` for people or `json` for programs; without it, a terminal gets text. */
type Options = { level: string; region: string; format?: LogFormat | undefined }
type LogFormat = 'text' | 'json'

/** Writes lines to standard error; standard output is for the results of commands. */
export function makeLogger(
  options: Options,
  output: DestinationStream = pino.destination({ dest: 2, sync: true }),
): Logger {
  return newPino(options, output)
}

/**
 * The log of a service, which is buffered. Without `requests`, programs get a line for each request and people do not.
 * With `isShared`, several processes write to standard error, and whole lines are kept together. Request lines bypass
 * pino, which takes 3.2 µs for such a line.
 */
export function makeServiceLogs(options: Options & { requests?: boolean | undefined; isShared?: boolean }) {
  const output = openBatchedOutput(options.isShared === true)
  const log = newPino(options, output)
  const { region } = options
  const regionText = JSON.stringify(region)
  const format = chooseFormat(options)
  const logsRequests = (options.requests ?? format === 'json') && log.isLevelEnabled('info')
  return {
    log,
    logRequest(line: RequestLine) {
      if (!logsRequests) return
      if (format === 'json') output.write(toRequestLine(line, regionText))
      else output.write(toTextLine(JSON.stringify({ level: 'info', time: toTime(), region, msg: toRequestText(line) })))
    },
    flush: output.flush,
  }
}

/** Only the path can have characters that JSON escapes. */
const toRequestLine = ({ traceId, method, path, status, ms, accountId }: RequestLine, regionText: string): string =>
  `{"level":"info","time":"${toTime()}","region":${regionText},"traceId":"${traceId}","method":"${method}",` +
  `"path":${JSON.stringify(path)},"status":${status},"ms":${ms}` +
  `${accountId === undefined ? '' : `,"accountId":"${accountId}"`},"msg":"request"}\n`

const toRequestText = ({ method, path, status, ms }: RequestLine) => `${method} ${path} ${status} in ${ms} ms`

export type ServiceLogs = ReturnType<typeof makeServiceLogs>

/** Hides credentials in whole lines: a URL may stand in a message, in a field, or in the error of another program. */
function newPino(options: Options, output: DestinationStream): Logger {
  const { level, region } = options
  const toLine = chooseFormat(options) === 'text' ? toTextLine : (line: string) => line
  return pino(
    {
      level,
      base: { region },
      timestamp: () => `,"time":"${toTime()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: toLoggedError },
    },
    { write: (line) => output.write(toLine(hideCredentials(line))) },
  )
}

const chooseFormat = ({ format }: Options): LogFormat => format ?? (process.stderr.isTTY ? 'text' : 'json')

/** A pipe keeps up to 4,096 bytes of one write together. The destination divides its writes between lines. */
const sharedSizes = { minLength: 4095, maxWrite: 4096 }

/** Lines are collected up to this length, or for this time. */
const batchLength = 16_384
const batchMs = 50

/**
 * Writes many lines together. The destination copies and measures all that it holds, up to 64 KB, at each write:
 * writing the lines of each turn of the event loop takes 4 KB of new memory for each of them.
 */
function openBatchedOutput(isShared: boolean) {
  const sizes = isShared ? sharedSizes : { minLength: 65_536, maxWrite: 131_072 }
  const output = pino.destination({ dest: 2, sync: false, periodicFlush: 250, ...sizes })
  let lines: string[] = []
  let length = 0
  let timer: NodeJS.Timeout | undefined
  const writeBatch = () => {
    clearTimeout(timer)
    timer = undefined
    const batch = isShared ? lines : [lines.join('')]
    lines = []
    length = 0
    for (const text of batch) if (text !== '') output.write(text)
  }
  process.on('exit', () => {
    writeBatch()
    output.flushSync()
  })
  return {
    write(line: string) {
      lines.push(line)
      length += line.length
      if (length >= batchLength) writeBatch()
      else timer ??= setTimeout(writeBatch, batchMs).unref()
    },
    /**
     * Call before the process ends. At exit the rest is written synchronously, which would never end when the reader of
     * standard error has stopped reading; this write has a time limit.
     */
    async flush() {
      writeBatch()
      await waitAtMost(new Promise<void>((resolve) => output.flush(() => resolve())), flushMs)
    },
  }
}

const flushMs = 2000

let formattedAt = 0
let formatted = ''

/** The current time as text, formatted once per millisecond because many lines share one. */
function toTime(): string {
  const now = Date.now()
  if (now !== formattedAt) {
    formattedAt = now
    formatted = new Date(now).toISOString()
  }
  return formatted
}

/** Keeps only fields that tell the cause: database drivers attach connections, parameters and row values to errors. */
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
