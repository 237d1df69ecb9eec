import { lstat } from 'node:fs/promises'
import type { Target } from '../targets/target.ts'
import { toBytes, toCount } from './numbers.ts'

/** Files and bytes counted so far; `isComplete` once all targets are counted. */
type Totals = { files: number; bytes: number; isComplete: boolean }

export type Progress = {
  /** Starts a file. `sent` records how many of its bytes were sent, `end` that it is done. */
  begin(): { sent(bytes: number): void; end(): void }
  /** Clears the bar while `write` runs; the next redraw shows it again. */
  writeAbove(write: () => void): void
  close(): void
}

const drawEveryMs = 100
const barWidth = 24
/** Width to assume if the terminal reports none, or 0. */
const defaultColumns = 80

/** Draws a progress bar in the last line of a terminal. */
export function openProgress(stderr: NodeJS.WriteStream, getTotals: () => Totals): Progress {
  const startedAt = Date.now()
  const state = { files: 0, bytes: 0, inFlight: new Set<{ bytes: number }>() }
  let isShown = false
  // The terminal may close before the process ends.
  stderr.on('error', () => {})
  const clear = () => {
    if (isShown) stderr.write('\r\x1b[K')
    isShown = false
  }
  const draw = () => {
    const bytes = [...state.inFlight].reduce((sum, file) => sum + file.bytes, state.bytes)
    const line = toProgressLine({ files: state.files, bytes, seconds: (Date.now() - startedAt) / 1000 }, getTotals())
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
    writeAbove(write) {
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
  writeAbove: (write) => write(),
  close() {},
}

/**
 * Counts all targets ahead of the scans, so that the bar can show a percentage. Targets that cannot be counted leave
 * the totals incomplete; the scan itself reports them.
 */
export function countTargets(targets: AsyncGenerator<Target>, signal: AbortSignal): () => Totals {
  const totals: Totals = { files: 0, bytes: 0, isComplete: false }
  const count = async () => {
    for await (const target of targets) {
      if (signal.aborted) return
      totals.files++
      if (target.kind !== 'file') continue
      totals.bytes += (await lstat(target.path.raw).catch(() => undefined))?.size ?? 0
    }
    totals.isComplete = true
  }
  count().catch(() => {})
  return () => totals
}

type Counts = { files: number; bytes: number; seconds: number }

function toProgressLine({ files, bytes, seconds }: Counts, totals: Totals): string {
  const rate = `${toBytes(bytes)}, ${toBytes(seconds > 0 ? Math.round(bytes / seconds) : 0)}/s`
  if (!totals.isComplete) return `${toCount(files)} files, ${rate}`
  const part = totals.bytes > 0 ? bytes / totals.bytes : totals.files > 0 ? files / totals.files : 1
  const share = Math.min(1, part)
  const filled = Math.round(share * barWidth)
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(barWidth - filled)}] ${String(Math.floor(share * 100)).padStart(3)} %`
  return `${bar}  ${toCount(files)} of ${toCount(totals.files)} files, ${rate}`
}
