import { fstatSync, writeSync } from 'node:fs'

/** Lines for standard output. `onFailure` is called once, when nothing more can be written. */
export type Output = { write(text: string): void; flush(): Promise<void> }

export function openOutput(onFailure: (sentence: string) => void): Output {
  let hasFailed = false
  const fail = (error: unknown) => {
    if (hasFailed) return
    hasFailed = true
    onFailure(toSentence(error))
  }
  const put = isStream() ? newStreamWriter(fail) : newFileWriter(fail)
  let lines = ''
  const putAll = () => {
    if (lines !== '' && !hasFailed) put(lines)
    lines = ''
  }
  return {
    write(text) {
      // Those of one turn go out together: a write costs as much as a scan. A terminal shares its lines with the bar.
      if (lines === '' && !process.stdout.isTTY) setImmediate(putAll)
      lines += text
      if (process.stdout.isTTY) putAll()
    },
    async flush() {
      putAll()
      // A pipe takes only as much as it has room for; the rest would end with the process.
      if (isStream() && !hasFailed) await new Promise<void>((resolve) => process.stdout.write('', () => resolve()))
    },
  }
}

function newStreamWriter(fail: (error: unknown) => void) {
  process.stdout.on('error', fail)
  return (text: string) => void process.stdout.write(text)
}

const newFileWriter = (fail: (error: unknown) => void) => (text: string) => {
  try {
    writeWhole(Buffer.from(text))
  } catch (error) {
    fail(error)
  }
}

function isStream(): boolean {
  const stats = fstatSync(1)
  return process.stdout.isTTY || stats.isFIFO() || stats.isSocket()
}

/** A disk that is almost full takes a part of it; Node's own stream takes that for all. */
function writeWhole(bytes: Buffer) {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at)
}

function toSentence(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return reasons[code] ?? `The output cannot be written: ${error instanceof Error ? error.message : String(error)}.`
}

const reasons: Record<string, string> = {
  EPIPE: 'Nobody reads the output any more.',
  ENOSPC: 'The output cannot be written: the disk is full. Make room, or write it elsewhere.',
  EDQUOT: 'The output cannot be written: the quota is used up. Make room, or write it elsewhere.',
  EIO: 'The output cannot be written: the terminal is gone, or the disk has failed.',
}
