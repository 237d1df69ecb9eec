import { ValidationFailed } from '@assay/client'
import type { Parsed } from '../command-line/parse.ts'
import { getConfig, openClient } from '../config.ts'
import { toInterruptedCode } from '../exit-codes.ts'
import { openInterrupts } from '../interrupts.ts'
import { openOutput } from '../report/output.ts'
import { noProgress } from '../report/progress.ts'
import { makeReporter } from '../report/reporter.ts'
import { toExitCode } from '../report/tally.ts'
import { defaultWaitMs } from '../scanning/limits.ts'
import { newFailure, type Outcome, toFailure } from '../scanning/outcome.ts'
import { UserError } from '../user-errors.ts'
import { readScanOptions } from './scan-options.ts'

/** Shows the results of background scans. A pending result counts as an error, because it is not clean. */
export async function result(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  if (parsed.args.length === 0) {
    throw new UserError('Specify the ids that --submit printed. See assay-scan result --help.')
  }
  const options = { ...readScanOptions(parsed), summary: false }
  const client = openClient(getConfig(env))
  const scans = options.kind === 'malware' ? client.malware : client.nsfw.images
  const interrupts = openInterrupts()
  const { signal } = interrupts
  let outputError: string | undefined
  const output = openOutput((message) => {
    outputError = message
  })
  const { report, notice, tally } = makeReporter(options, { output, progress: noProgress, env })
  const call = { signal, ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }) }
  for (const id of parsed.args) {
    const fetching = parsed.has('wait')
      ? scans.waitFor(id, { timeoutMs: defaultWaitMs, ...call })
      : scans.getResult(id, call)
    const outcome = await fetching.then((found): Outcome => ({ kind: 'scanned', result: found }), toResultFailure)
    report({ kind: 'stream', display: id, open: () => process.stdin }, outcome)
    if (signal.aborted || outputError !== undefined || (outcome.kind === 'failed' && outcome.affectsAll)) break
  }
  if (outputError !== undefined) notice(outputError)
  await output.flush()
  const interruptedBy = interrupts.received()
  interrupts.close()
  if (interruptedBy !== undefined) return toInterruptedCode(interruptedBy)
  return toExitCode(outputError === undefined ? tally : { ...tally, errors: tally.errors + 1 })
}

/** The service reports an unknown id as an invalid field. */
const toResultFailure = (error: unknown): Outcome =>
  error instanceof ValidationFailed ? newFailure('No such scan', error.name) : toFailure(error)
