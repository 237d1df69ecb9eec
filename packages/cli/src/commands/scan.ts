import type { Parsed } from '../command-line/parse.ts'
import { getConfig, openClient } from '../config.ts'
import { toInterruptedCode } from '../exit-codes.ts'
import { newStop, openInterrupts } from '../interrupts.ts'
import { openOutput } from '../report/output.ts'
import { countTargets, noProgress, openProgress } from '../report/progress.ts'
import { makeReporter } from '../report/reporter.ts'
import { toExitCode } from '../report/tally.ts'
import { runAll } from '../scanning/run-all.ts'
import { makeScanTarget } from '../scanning/scan-target.ts'
import { listTargets } from '../targets/list-targets.ts'
import { UserError } from '../user-errors.ts'
import { readScanOptions } from './scan-options.ts'

const notScanned = 'Files not listed above were not scanned.'

/** Scans everything that the arguments name, and returns the exit code. */
export async function scan(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  const { args } = parsed
  const options = readScanOptions(parsed)
  const background = readBackground(parsed)
  if (args.length === 0) {
    throw new UserError(
      'Specify what to scan: files, directories, URLs, or - for standard input. See assay-scan --help.',
    )
  }
  if (args.filter((arg) => arg === '-').length > 1) throw new UserError('Standard input (-) can be scanned only once.')
  const client = openClient(getConfig(env))

  const interrupts = openInterrupts()
  const stop = newStop(interrupts.signal)
  const output = openOutput(stop.stopFor)
  const stdinName = parsed.findText('name') ?? 'stdin'
  const progress = process.stderr.isTTY
    ? openProgress(process.stderr, countTargets(listTargets(args, { stdinName }), stop.signal))
    : noProgress
  const { report, notice, tally, close } = makeReporter(options, { output, progress, env })
  const scanTarget = makeScanTarget({ ...options, client, background, signal: stop.signal, notice })
  const onDirectory = () => {
    tally.directories++
  }

  await runAll(listTargets(args, { stdinName, onDirectory }), {
    parallel: options.parallel,
    signal: stop.signal,
    async work(target) {
      const file = progress.begin()
      const outcome = await scanTarget(target, file.sent)
      file.end()
      // A failure that affects all files is one of the service, not of this file, and is told once.
      const affectsAll = outcome.kind === 'failed' && outcome.affectsAll
      report(target, affectsAll ? { kind: 'unfinished' } : outcome)
      if (affectsAll) stop.stopFor(outcome.reason)
    },
  })
  if (stop.reason() !== undefined) notice(`${stop.reason()} ${notScanned}`)
  const interruptedBy = interrupts.received()
  if (interruptedBy !== undefined) notice(`Interrupted. ${notScanned}`)
  close()
  await output.flush()
  interrupts.close()
  if (interruptedBy !== undefined) return toInterruptedCode(interruptedBy)
  return stop.reason() === undefined ? toExitCode(tally) : toExitCode({ ...tally, errors: tally.errors + 1 })
}

function readBackground(parsed: Parsed) {
  const callbackUrl = parsed.findText('callback')
  if (parsed.has('submit')) return { wait: parsed.has('wait'), ...(callbackUrl !== undefined && { callbackUrl }) }
  if (parsed.has('wait')) {
    throw new UserError('--wait requires --submit. Without --submit, assay-scan always waits for verdicts.')
  }
  if (callbackUrl !== undefined)
    throw new UserError('--callback requires --submit. Only background scans send webhooks.')
  return undefined
}
