import type { Kind } from '../scanning/limits.ts'
import type { Outcome } from '../scanning/outcome.ts'
import type { Target } from '../targets/target.ts'
import { findJson, findLine, makePaint } from './lines.ts'
import type { Output } from './output.ts'
import type { Progress } from './progress.ts'
import { sanitize } from './sanitize.ts'
import { countOutcome, findDegraded, newTally, toSummary } from './tally.ts'

export type ReportOptions = { json: boolean; infected: boolean; strict: boolean; summary: boolean; kind: Kind }

/** Prints and counts the outcomes of the targets. */
export function makeReporter(
  { json, infected, strict, summary, kind }: ReportOptions,
  { output, progress, env }: { output: Output; progress: Progress; env: NodeJS.ProcessEnv },
) {
  const tally = newTally(strict)
  const paint = makePaint(process.stdout.isTTY, env)
  /** Prints a message for the user on standard error. */
  const notice = (message: string) => {
    progress.writeAbove(() => process.stderr.write(`${sanitize(message)}\n`))
  }
  return {
    tally,
    report(target: Target, outcome: Outcome) {
      countOutcome(tally, outcome)
      const degraded = findDegraded(outcome)
      if (degraded !== undefined && tally.degraded === 1) notice(`Warning: the service is degraded. ${degraded}`)
      if (infected && !isNotable(outcome)) return
      // A tree may contain thousands of skipped files, so the summary has only their number.
      if (outcome.kind === 'skipped' && !json) return
      const line = json ? findJson(target, outcome) : findLine(target, outcome, paint)
      if (line !== undefined) progress.writeAbove(() => output.write(`${line}\n`))
    },
    notice,
    close() {
      progress.close()
      if (summary && !json) output.write(toSummary(tally, kind))
    },
  }
}

/** Outcomes that --infected shows: threats, errors, and submitted files, which have no verdict yet. */
const isNotable = (outcome: Outcome) =>
  outcome.kind === 'failed' ||
  outcome.kind === 'submitted' ||
  (outcome.kind === 'scanned' && outcome.result.status !== 'clean')
