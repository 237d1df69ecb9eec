import { readFileSync } from 'node:fs'

/** The kernel counts in ticks, which are hundredths of a second for programs on every Linux. */
const tickMs = 10

/**
 * Processor time, user and system, that this process and the processes below it have used, in milliseconds. The kernel
 * adds a process to its parent when the parent has waited for it: processes that still run are not counted, nor are
 * those that outlived their parent. Returns 0 on systems without `/proc`.
 */
export function readProcessorMs(): number {
  let stat: string
  try {
    stat = readFileSync('/proc/self/stat', 'utf8')
  } catch {
    return 0
  }
  // `pid (program) state ...`; utime, stime, cutime and cstime are the fields 14 to 17.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * tickMs, 0)
}
