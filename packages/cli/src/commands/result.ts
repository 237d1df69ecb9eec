import { ValidationFailed } from '@assay/client'
import type { Parsed } from '../command-line/parse.ts'
import { getConfig, openClient } from '../config.ts'
import { toInterruptedCode } from '../exit-codes.ts'
import { openInterrupts } from '../interrupts.ts'
import { Mistake } from '../mistake.ts'
import { openOutput } from '../report/output.ts'
import { noProgress } from '../report/progress.ts'
import { makeReporter } from '../report/reporter.ts'
import { toExitCode } from '../report/tally.ts'
import type { Outcome } from '../scanning/outcome.ts'
import { toFailed } from '../scanning/to-failed.ts'
import { readScanOptions } from './scan-options.ts'

const defaultWaitMs = 3_600_000

/** What became of background scans. One that is pending is not clean: the exit code says error. */
export async function result(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  if (parsed.args.length === 0)
    throw new Mistake('Name the ids that --submit has printed. See assay-scan result --help.')
  const options = { ...readScanOptions(parsed), summary: false }
  const client = openClient(getConfig(env))
  const scans = options.kind === 'malware' ? client.malware : client.nsfw.images
  const interrupts = openInterrupts()
  const { signal } = interrupts
  let failure: string | undefined
  const output = openOutput((sentence) => {
    failure = sentence
  })
  const { report, tell, tally } = makeReporter(options, { output, progress: noProgress, env })
  const call = { signal, ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }) }
  for (const id of parsed.args) {
    const fetching = parsed.has('wait')
      ? scans.waitFor(id, { timeoutMs: defaultWaitMs, ...call })
      : scans.getResult(id, call)
    const outcome = await fetching.then((found): Outcome => ({ kind: 'scanned', result: found }), toFailure)
    report({ kind: 'stream', shown: id, open: () => process.stdin }, outcome)
    if (signal.aborted || failure !== undefined || (outcome.kind === 'failed' && outcome.isForAll)) break
  }
  if (failure !== undefined) tell(failure)
  await output.flush()
  const interruptedBy = interrupts.received()
  interrupts.close()
  if (interruptedBy !== undefined) return toInterruptedCode(interruptedBy)
  return toExitCode(failure === undefined ? tally : { ...tally, errors: tally.errors + 1 })
}

/** An id that is not there is no mistake in a field to the one who typed it. */
const toFailure = (error: unknown): Outcome =>
  error instanceof ValidationFailed
    ? { kind: 'failed', reason: 'There is no such scan', code: error.name, isForAll: false }
    : toFailed(error)
