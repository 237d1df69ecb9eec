import type { Kind } from '../scanning/limits.ts'
import type { Outcome } from '../scanning/outcome.ts'
import type { Target } from '../targets/target.ts'
import { makePaint } from './colours.ts'
import { toInert } from './inert.ts'
import { findJson, findLine } from './lines.ts'
import type { Output } from './output.ts'
import type { Progress } from './progress.ts'
import { toSummary } from './summary.ts'
import { count, newTally } from './tally.ts'

export type ReportOptions = { json: boolean; infected: boolean; summary: boolean; kind: Kind }

/** Writes what becomes of the targets, and counts it. */
export function makeReporter(
  { json, infected, summary, kind }: ReportOptions,
  { output, progress, env }: { output: Output; progress: Progress; env: NodeJS.ProcessEnv },
) {
  const tally = newTally()
  const paint = makePaint(process.stdout.isTTY, env)
  return {
    tally,
    report(target: Target, outcome: Outcome) {
      count(tally, outcome)
      if (infected && !isWorthTelling(outcome)) return
      // In a tree there may be thousands; the summary has their number.
      if (outcome.kind === 'skipped' && !json) return
      const line = json ? findJson(target, outcome) : findLine(target, outcome, paint)
      if (line !== undefined) progress.aside(() => output.write(`${line}\n`))
    },
    /** For the person, beside the results. */
    tell(sentence: string) {
      progress.aside(() => process.stderr.write(`${toInert(sentence)}\n`))
    },
    close() {
      progress.close()
      if (summary && !json) output.write(toSummary(tally, kind))
    },
  }
}

/** What is not clean, and what nobody has looked at. */
const isWorthTelling = (outcome: Outcome) =>
  outcome.kind === 'failed' ||
  outcome.kind === 'submitted' ||
  (outcome.kind === 'scanned' && outcome.result.status !== 'clean')
