import { readFileSync } from 'node:fs'

/** A decoder fills perhaps 50 MB in that time; reading takes 30 µs. */
const everyMs = 25

/** Calls `onExceeded` once when a process holds more memory than it may. */
export function watchMemory(pid: number, { maxMb, onExceeded }: { maxMb: number; onExceeded(): void }) {
  const timer = setInterval(() => {
    if ((findResidentMb(pid) ?? 0) <= maxMb) return
    clearInterval(timer)
    onExceeded()
  }, everyMs)
  return { stop: () => clearInterval(timer) }
}

/** Undefined where there is no such process, or no /proc. */
function findResidentMb(pid: number): number | undefined {
  try {
    // Not from statm, which counts pages, and their size is not the same on every machine.
    const kilobytes = readFileSync(`/proc/${pid}/status`, 'latin1').match(/^VmRSS:\s+(\d+) kB$/m)?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
  } catch {
    return undefined
  }
}
