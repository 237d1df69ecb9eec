import { readFileSync } from 'node:fs'
import { findProcessorMs, readProcessorMs } from '../../runtime/process.ts'

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

const stallChecks = 15

/**
 * Calls `onStalled` when the process is awaited for `stallMs` and neither uses processor time nor sends a frame. The
 * checks are counted, not the time between them: a stall of our own event loop is one check.
 */
export function watchStalls(
  pid: number | undefined,
  deps: { stallMs: number; isAwaited(): boolean; countFrames(): number; onStalled(): void },
) {
  let checks = 0
  let last: { processorMs: number | undefined; frames: number } | undefined
  const timer = setInterval(() => {
    if (pid === undefined || !deps.isAwaited()) {
      checks = 0
      return
    }
    const current = { processorMs: findProcessorMs(pid), frames: deps.countFrames() }
    const isStill = current.processorMs === last?.processorMs && current.frames === last?.frames
    // Where the time cannot be read, only the limit on elapsed time ends the wait.
    checks = isStill && current.processorMs !== undefined ? checks + 1 : 0
    last = current
    if (checks < stallChecks) return
    clearInterval(timer)
    deps.onStalled()
  }, deps.stallMs / stallChecks).unref()
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
