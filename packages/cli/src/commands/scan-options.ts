import type { Parsed } from '../command-line/parse.ts'
import type { ReportOptions } from '../report/reporter.ts'

const defaultParallel = 8

/** Reads the options that scan, watch and result share. */
export function readScanOptions(parsed: Parsed): ReportOptions & { parallel: number; timeoutMs?: number } {
  const seconds = parsed.findNumber('timeout', { min: 0.1, max: 86_400, isWhole: false })
  return {
    kind: parsed.has('nsfw') ? 'nsfw' : 'malware',
    json: parsed.has('json'),
    infected: parsed.has('infected'),
    strict: parsed.has('strict'),
    summary: !parsed.has('no-summary'),
    parallel: parsed.findNumber('parallel', { min: 1, max: 256, isWhole: true }) ?? defaultParallel,
    ...(seconds !== undefined && { timeoutMs: seconds * 1000 }),
  }
}
