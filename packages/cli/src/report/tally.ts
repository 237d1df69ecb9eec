import type { Meta } from '@assay/client'
import { exitCodes } from '../exit-codes.ts'
import type { Outcome } from '../scanning/outcome.ts'

/** What was done so far. */
export function newTally() {
  return {
    directories: 0,
    scanned: 0,
    threats: 0,
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

export function count(tally: Tally, outcome: Outcome) {
  if ('meta' in outcome) tally.credits = outcome.meta?.credits ?? tally.credits
  if (outcome.kind === 'scanned') {
    tally.scanned++
    tally.bytes += outcome.result.content_length
    if (outcome.result.status === 'threat') tally.threats++
    // Whatever is not one of these two is not clean.
    else if (outcome.result.status !== 'clean') tally.errors++
  } else if (outcome.kind === 'failed') tally.errors++
  else tally[outcome.kind]++
}

/** As clamscan: a threat counts more than an error. */
export const toExitCode = ({ threats, errors }: Tally): number =>
  threats > 0 ? exitCodes.threat : errors > 0 ? exitCodes.error : exitCodes.clean
