import { readFileSync } from 'node:fs'
import { readProcessorMs } from '../../runtime/process.ts'

export type ResourceLimits = {
  /** Resident memory. */
  maxMemoryMb?: number
  /** Processor time of the process and its descendants. */
  maxProcessorMs?: number
}

/** Pause between two checks of memory. A decoder fills perhaps 50 MB in that time; reading the status takes 30 µs. */
const memoryEveryMs = 25
/** Pause between two checks of processor time. The first one begins to count, so that short work pays nothing. */
const processorEveryMs = 200

/** Calls `onExceeded` when the process exceeds a limit, at most once for each. Without limits it does nothing. */
export function watchResources(
  pid: number | undefined,
  { maxMemoryMb, maxProcessorMs }: ResourceLimits,
  onExceeded: (limit: string) => void,
) {
  const timers: NodeJS.Timeout[] = []

  function watch(everyMs: number, isExceeded: () => boolean, limit: string) {
    const timer = setInterval(() => {
      if (!isExceeded()) return
      clearInterval(timer)
      onExceeded(limit)
    }, everyMs)
    timers.push(timer)
  }

  if (pid !== undefined && maxMemoryMb !== undefined)
    watch(memoryEveryMs, () => (findResidentMb(pid) ?? 0) > maxMemoryMb, `${maxMemoryMb} MB`)
  if (pid !== undefined && maxProcessorMs !== undefined) {
    let firstMs: number | undefined
    const isExceeded = () => {
      const processorMs = readProcessorMs(pid)
      firstMs ??= processorMs
      return processorMs - firstMs > maxProcessorMs
    }
    watch(processorEveryMs, isExceeded, `${maxProcessorMs} ms of processor time`)
  }
  return { stop: () => timers.forEach(clearInterval) }
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
