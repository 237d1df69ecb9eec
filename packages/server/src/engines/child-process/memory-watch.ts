import { readFileSync } from 'node:fs'

/** Pause between two checks. A decoder fills perhaps 50 MB in that time; reading the status takes 30 µs. */
const everyMs = 25

/**
 * Calls `onExceeded` once when the process holds more resident memory than `maxMb`. Without a limit it does nothing.
 */
export function watchMemory(pid: number | undefined, maxMb: number | undefined, onExceeded: () => void) {
  if (pid === undefined || maxMb === undefined) return { stop() {} }
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
    // statm would count pages, whose size differs between machines.
    const kilobytes = readFileSync(`/proc/${pid}/status`, 'latin1').match(/^VmRSS:\s+(\d+) kB$/m)?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
  } catch {
    return undefined
  }
}
