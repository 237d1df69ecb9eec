import type { Parsed } from '../command-line/parse.ts'
import { getConfig, openClient } from '../config.ts'
import { toInterruptedCode } from '../exit-codes.ts'
import { openInterrupts } from '../interrupts.ts'
import { Mistake } from '../mistake.ts'
import { expectAll } from '../report/expect.ts'
import { openOutput } from '../report/output.ts'
import { noProgress, openProgress } from '../report/progress.ts'
import { makeReporter } from '../report/reporter.ts'
import { toExitCode } from '../report/tally.ts'
import { runAll } from '../scanning/run-all.ts'
import { makeScanTarget } from '../scanning/scan-target.ts'
import { newStop } from '../stop.ts'
import { listTargets } from '../targets/list-targets.ts'
import { readScanOptions } from './scan-options.ts'

/** Scans what the arguments stand for; gives the exit code. */
export async function scan(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  const { args } = parsed
  const options = readScanOptions(parsed)
  const background = readBackground(parsed)
  if (args.length === 0)
    throw new Mistake('Name what to scan: files, directories, URLs, or - for standard input. See assay-scan --help.')
  if (args.filter((arg) => arg === '-').length > 1) throw new Mistake('Standard input (-) can be scanned once only.')
  const client = openClient(getConfig(env))

  const interrupts = openInterrupts()
  const stop = newStop(interrupts.signal)
  const output = openOutput((sentence) => stop.because(sentence))
  const stdinName = parsed.findText('name') ?? 'stdin'
  const progress = process.stderr.isTTY
    ? openProgress(process.stderr, expectAll(listTargets(args, { stdinName }), stop.signal))
    : noProgress
  const { report, tell, tally, close } = makeReporter(options, { output, progress, env })
  const scanTarget = makeScanTarget({ ...options, client, background, signal: stop.signal, tell })
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
      // Once it is told, it is not told again for every file that was under way.
      if (outcome.kind === 'failed' && outcome.isForAll && stop.signal.aborted) report(target, { kind: 'unfinished' })
      else report(target, outcome)
      if (outcome.kind === 'failed' && outcome.isForAll) stop.because('Stopped: the rest would fare the same.')
    },
  })
  if (stop.reason() !== undefined) tell(`${stop.reason()} What is not listed above was not scanned.`)
  const interruptedBy = interrupts.received()
  if (interruptedBy !== undefined) tell('Interrupted. What is not listed above was not scanned.')
  close()
  await output.flush()
  interrupts.close()
  if (interruptedBy !== undefined) return toInterruptedCode(interruptedBy)
  return stop.reason() === undefined ? toExitCode(tally) : toExitCode({ ...tally, errors: tally.errors + 1 })
}

function readBackground(parsed: Parsed) {
  const callbackUrl = parsed.findText('callback')
  if (parsed.has('submit')) return { wait: parsed.has('wait'), ...(callbackUrl !== undefined && { callbackUrl }) }
  if (parsed.has('wait')) throw new Mistake('--wait goes with --submit: without it, verdicts are waited for anyway.')
  if (callbackUrl !== undefined)
    throw new Mistake('--callback goes with --submit: only background scans are sent there.')
  return false
}
