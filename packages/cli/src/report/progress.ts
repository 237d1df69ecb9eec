import { toBytes, toCount } from './numbers.ts'

/** What there is to do, as far as it is known yet. */
export type Expected = { files: number; bytes: number; isAll: boolean }

export type Progress = {
  /** A file is begun; the verbs tell how many of its bytes were sent, and that it is done. */
  begin(): { sent(bytes: number): void; end(): void }
  /** Takes the bar away, has something else written, and puts it back. */
  aside(write: () => void): void
  close(): void
}

const drawEveryMs = 100
const barWidth = 24
/** Some terminals do not tell, or tell 0. */
const defaultColumns = 80

/** A line at the bottom of a terminal, drawn over itself. */
export function openProgress(stderr: NodeJS.WriteStream, expected: () => Expected): Progress {
  const startedAt = Date.now()
  const state = { files: 0, bytes: 0, inFlight: new Set<{ bytes: number }>() }
  let isShown = false
  // The terminal may go away before we do.
  stderr.on('error', () => {})
  const clear = () => {
    if (isShown) stderr.write('\r\x1b[K')
    isShown = false
  }
  const draw = () => {
    const bytes = [...state.inFlight].reduce((sum, file) => sum + file.bytes, state.bytes)
    const line = toProgressLine({ files: state.files, bytes, seconds: (Date.now() - startedAt) / 1000 }, expected())
    stderr.write(`\r\x1b[K${line.slice(0, Math.max(0, (stderr.columns || defaultColumns) - 1))}`)
    isShown = true
  }
  const timer = setInterval(draw, drawEveryMs)
  return {
    begin() {
      const file = { bytes: 0 }
      state.inFlight.add(file)
      return {
        sent: (bytes) => {
          file.bytes = Math.max(file.bytes, bytes)
        },
        end: () => {
          state.inFlight.delete(file)
          state.files++
          state.bytes += file.bytes
        },
      }
    },
    aside(write) {
      clear()
      write()
    },
    close() {
      clearInterval(timer)
      clear()
    },
  }
}

export const noProgress: Progress = {
  begin: () => ({ sent() {}, end() {} }),
  aside: (write) => write(),
  close() {},
}

type Done = { files: number; bytes: number; seconds: number }

function toProgressLine({ files, bytes, seconds }: Done, expected: Expected): string {
  const rate = `${toBytes(bytes)}, ${toBytes(seconds > 0 ? Math.round(bytes / seconds) : 0)}/s`
  if (!expected.isAll) return `${toCount(files)} files, ${rate}`
  const part = expected.bytes > 0 ? bytes / expected.bytes : expected.files > 0 ? files / expected.files : 1
  const share = Math.min(1, part)
  const filled = Math.round(share * barWidth)
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(barWidth - filled)}] ${String(Math.floor(share * 100)).padStart(3)} %`
  return `${bar}  ${toCount(files)} of ${toCount(expected.files)} files, ${rate}`
}
