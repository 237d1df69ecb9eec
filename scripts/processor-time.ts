import { readFileSync } from 'node:fs'

/** The kernel counts in ticks, which are hundredths of a second for programs on every Linux. */
const tickMs = 10

/**
 * Processor time, user and system, that this process and the processes below it have used, in milliseconds. The kernel
 * adds a process to its parent when the parent has waited for it: processes that still run are not counted, nor are
 * those that outlived their parent. Returns 0 on systems without `/proc`.
 */
export function readProcessorMs(): number {
  const stat = findText('/proc/self/stat')
  // `pid (program) state ...`; utime, stime, cutime and cstime are the fields 14 to 17.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * tickMs, 0)
}

/**
 * Time for which the processors of this virtual machine worked for other machines of its host, in milliseconds. Returns
 * 0 on systems without `/proc`.
 */
export function readStolenMs(): number {
  // `cpu  user nice system idle iowait irq softirq steal ...` of all processors together.
  const [all = ''] = findText('/proc/stat').split('\n', 1)
  return Number(all.split(/ +/)[8] ?? 0) * tickMs
}

function findText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
