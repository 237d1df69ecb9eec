import type { Meta } from '@assay/client'
import { exitCodes } from '../exit-codes.ts'
import type { Kind } from '../scanning/limits.ts'
import type { Outcome } from '../scanning/outcome.ts'
import { toBytes, toCount } from './numbers.ts'

/** Counts of a run, for the summary and the exit code. With `isStrict`, results of a degraded service are errors. */
export function newTally(isStrict: boolean) {
  return {
    directories: 0,
    scanned: 0,
    threats: 0,
    isStrict,
    /** Results that the service gave although ClamAV or its databases were missing or old. */
    degraded: 0,
    errors: 0,
    empty: 0,
    skipped: 0,
    submitted: 0,
    unfinished: 0,
    bytes: 0,
    startedAt: Date.now(),
    credits: undefined as Meta['credits'],
  }
}

export type Tally = ReturnType<typeof newTally>

export function countOutcome(tally: Tally, outcome: Outcome) {
  if ('meta' in outcome) tally.credits = outcome.meta?.credits ?? tally.credits
  if (outcome.kind === 'scanned') {
    tally.scanned++
    tally.bytes += outcome.result.content_length
    if (findDegraded(outcome) !== undefined) tally.degraded++
    if (outcome.result.status === 'threat') tally.threats++
    // Any status other than clean and threat, such as pending, counts as an error.
    else if (outcome.result.status !== 'clean') tally.errors++
  } else if (outcome.kind === 'failed') tally.errors++
  else tally[outcome.kind]++
}

/** The sentence with which a result says that the service is degraded. */
export const findDegraded = (outcome: Outcome): string | undefined =>
  outcome.kind === 'scanned' ? outcome.result.metadata?.degraded : undefined

/** As with clamscan, a threat takes precedence over an error. */
export function toExitCode({ threats, errors, degraded, isStrict }: Tally): number {
  if (threats > 0) return exitCodes.threat
  return errors > 0 || (isStrict && degraded > 0) ? exitCodes.error : exitCodes.clean
}

/** The summary in the format of clamscan, without lines whose count is 0. */
export function toSummary(tally: Tally, kind: Kind): string {
  const seconds = (Date.now() - tally.startedAt) / 1000
  const { directories, empty, skipped, submitted, unfinished, errors, credits } = tally
  const skippedKinds = `links, special files${kind === 'nsfw' ? ', files that are not images' : ''}`
  const lines = [
    directories > 0 && `Scanned directories: ${toCount(directories)}`,
    `Scanned files: ${toCount(tally.scanned)}`,
    `${kind === 'nsfw' ? 'Unsafe images' : 'Infected files'}: ${toCount(tally.threats)}`,
    submitted > 0 && `Submitted files: ${toCount(submitted)}`,
    tally.degraded > 0 && `Scanned by a degraded service: ${toCount(tally.degraded)}`,
    errors > 0 && `Total errors: ${toCount(errors)}`,
    empty > 0 && `Empty files: ${toCount(empty)}`,
    skipped > 0 && `Skipped: ${toCount(skipped)} (${skippedKinds})`,
    unfinished > 0 && `Interrupted scans: ${toCount(unfinished)}`,
    `Data scanned: ${toBytes(tally.bytes)}`,
    credits && `Credits left: ${toCount(credits.remaining)} of ${toCount(credits.limit)}`,
    `Time: ${seconds.toFixed(3)} sec (${Math.floor(seconds / 60)} m ${Math.floor(seconds % 60)} s)`,
  ]
  return `\n----------- SCAN SUMMARY -----------\n${lines.filter((line) => typeof line === 'string').join('\n')}\n`
}
