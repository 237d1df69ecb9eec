import { fstatSync, writeSync } from 'node:fs'
import { exitCodes } from '../exit-codes.ts'
import { toMessage } from '../user-errors.ts'

/** Writer for standard output. `onFailure` is called once, when writing is no longer possible. */
export type Output = { write(text: string): void; flush(): Promise<void> }

export function openOutput(onFailure: (message: string) => void): Output {
  let hasFailed = false
  const fail = (error: unknown) => {
    if (hasFailed) return
    hasFailed = true
    onFailure(toOutputError(error))
  }
  const put = isStream() ? newStreamWriter(fail) : newFileWriter(fail)
  let lines = ''
  const putAll = () => {
    if (lines !== '' && !hasFailed) put(lines)
    lines = ''
  }
  return {
    write(text) {
      // Lines of one turn of the event loop go out in one write, which costs as much as a scan. On a terminal each line
      // goes out alone, because the progress bar is redrawn between lines.
      if (lines === '' && !process.stdout.isTTY) setImmediate(putAll)
      lines += text
      if (process.stdout.isTTY) putAll()
    },
    async flush() {
      putAll()
      // A pipe accepts only what fits its buffer; the rest would be lost when the process exits.
      if (isStream() && !hasFailed) await new Promise<void>((resolve) => process.stdout.write('', () => resolve()))
    },
  }
}

/** Prints the output of a short command and returns its exit code. */
export async function print(text: string): Promise<number> {
  let code: number = exitCodes.clean
  const output = openOutput((message) => {
    code = exitCodes.error
    process.stderr.write(`assay-scan: ${message}\n`)
  })
  output.write(text)
  await output.flush()
  return code
}

function newStreamWriter(fail: (error: unknown) => void) {
  process.stdout.on('error', fail)
  return (text: string) => void process.stdout.write(text)
}

const newFileWriter = (fail: (error: unknown) => void) => (text: string) => {
  try {
    writeAll(Buffer.from(text))
  } catch (error) {
    fail(error)
  }
}

function isStream(): boolean {
  const stats = fstatSync(1)
  return process.stdout.isTTY || stats.isFIFO() || stats.isSocket()
}

/** Continues after a partial write, as on a nearly full disk, which the stream of Node takes for a complete one. */
function writeAll(bytes: Buffer) {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at)
}

function toOutputError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return messages[code] ?? `Cannot write the output: ${toMessage(error)}.`
}

const messages: Record<string, string> = {
  EPIPE: 'The reader of the output has closed it.',
  ENOSPC: 'Cannot write the output: the disk is full. Free some space, or write the output elsewhere.',
  EDQUOT: 'Cannot write the output: the disk quota is exceeded. Free some space, or write the output elsewhere.',
  EIO: 'Cannot write the output: the terminal was closed, or the disk failed.',
}
