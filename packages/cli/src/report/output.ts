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
  if (isStream()) {
    process.stdout.on('error', fail)
    return {
      write: (text) => {
        if (!hasFailed) process.stdout.write(text)
      },
      // A pipe takes only as much as it has room for; the rest would end with the process.
      flush: () =>
        hasFailed ? Promise.resolve() : new Promise((resolve) => process.stdout.write('', () => resolve())),
    }
  }
  return {
    write: (text) => {
      if (hasFailed) return
      try {
        writeWhole(Buffer.from(text))
      } catch (error) {
        fail(error)
      }
    },
    flush: async () => {},
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
