import { realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Parsed } from '../command-line/parse.ts'
import { getConfig, openClient } from '../config.ts'
import { exitCodes } from '../exit-codes.ts'
import { newStop, openInterrupts } from '../interrupts.ts'
import { openOutput } from '../report/output.ts'
import { noProgress } from '../report/progress.ts'
import { makeReporter } from '../report/reporter.ts'
import { toExitCode } from '../report/tally.ts'
import { makeBackoff, type Notice, permanentErrors, transientErrors } from '../scanning/backoff.ts'
import { newFailure, type Outcome } from '../scanning/outcome.ts'
import { runAll } from '../scanning/run-all.ts'
import { makeScanTarget } from '../scanning/scan-target.ts'
import { toFilePath } from '../targets/file-path.ts'
import { toFileError } from '../targets/target.ts'
import { UserError } from '../user-errors.ts'
import { type Arrival, findFingerprint, makeArrivals } from '../watching/arrivals.ts'
import { quarantine, type ThreatAction } from '../watching/quarantine.ts'
import { openWatchState, type WatchState } from '../watching/watch-state.ts'
import { readScanOptions } from './scan-options.ts'

/** Scans the files in a directory and those that arrive, until a signal ends it, which is not an error. */
export async function watch(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  const options = readScanOptions(parsed)
  const [settle = 2, interval = 2] = ['settle', 'interval'].map((name) =>
    parsed.findNumber(name, { min: 0.1, max: 3600, isWhole: false }),
  )
  const action = readThreatAction(parsed)
  const directory = await requireDirectory(parsed.args)
  const client = openClient(getConfig(env))
  const state = openWatchState(env, { directory: await realpath(directory), kind: options.kind })

  const interrupts = openInterrupts()
  const stop = newStop(interrupts.signal)
  const { signal } = stop
  const output = openOutput(stop.stopFor)
  const { report, notice, tally, close } = makeReporter(options, { output, progress: noProgress, env })
  const scanTarget = makeScanTarget({ ...options, client, background: undefined, signal, notice })
  const backoff = makeBackoff(notice)
  const quarantineDir = action !== undefined && 'moveTo' in action ? resolve(action.moveTo) : undefined
  const arrivals = makeArrivals({
    root: toFilePath(directory),
    settleMs: settle * 1000,
    intervalMs: interval * 1000,
    isExcluded: ({ display }) => resolve(display) === quarantineDir,
    done: state.done,
    signal,
    pausedUntil: backoff.pausedUntil,
    onUnreadable: (target) => report(target, newFailure(target.reason, target.code)),
  })
  const handleOutcome = makeOutcomeHandler({ arrivals, backoff, stop, report, notice, state, action })

  if (process.stderr.isTTY) notice(`Watching ${directory}. Press Ctrl-C to stop.`)
  await runAll(arrivals.listArrivals(), {
    parallel: options.parallel,
    signal,
    work: async (arrival) => handleOutcome(arrival, await scanTarget(arrival, () => {})),
  })
  saveState(state, arrivals, notice, { isLast: true })
  const reason = stop.reason()
  if (reason !== undefined) notice(reason)
  close()
  await output.flush()
  interrupts.close()
  if (reason === undefined) return toExitCode(tally)
  return tally.threats > 0 ? exitCodes.threat : exitCodes.error
}

type HandlerDeps = {
  arrivals: ReturnType<typeof makeArrivals>
  backoff: ReturnType<typeof makeBackoff>
  stop: ReturnType<typeof newStop>
  report: ReturnType<typeof makeReporter>['report']
  notice: Notice
  state: WatchState
  action: ThreatAction
}

/** Decides what follows from the outcome of one scan: retry, stop, report, or quarantine. */
function makeOutcomeHandler({ arrivals, backoff, stop, report, notice, state, action }: HandlerDeps) {
  return async (arrival: Arrival, outcome: Outcome) => {
    if (outcome.kind === 'unfinished') return arrivals.setState(arrival, 'waiting')
    if (outcome.kind === 'failed' && permanentErrors.includes(outcome.code)) return stop.stopFor(outcome.reason)
    if (outcome.kind === 'failed' && transientErrors.includes(outcome.code)) {
      backoff.fail(outcome.reason)
      return arrivals.setState(arrival, 'waiting')
    }
    backoff.succeed()
    // The file was removed or changed during the scan, so the verdict does not apply to the present file.
    if ((await findFingerprint(arrival.path)) !== arrival.fingerprint) return arrivals.forget(arrival)
    report(arrival, outcome)
    const isThreat = outcome.kind === 'scanned' && outcome.result.status === 'threat'
    arrivals.setState(arrival, isThreat || outcome.kind === 'failed' ? 'reported' : 'done')
    if (isThreat) await removeThreat(arrival)
    saveState(state, arrivals, notice)
  }

  async function removeThreat(arrival: Arrival) {
    try {
      const message = await quarantine(arrival, action)
      if (message !== undefined) notice(message)
    } catch (error) {
      report(arrival, newFailure(`The threat could not be removed: ${toFileError(error).reason}`))
    }
  }
}

function saveState(state: WatchState, { listDone }: HandlerDeps['arrivals'], notice: Notice, { isLast = false } = {}) {
  try {
    state.save(listDone(), { isLast })
  } catch (error) {
    notice(`Cannot write ${state.path}: ${toFileError(error).reason}. After a restart, all files are scanned again.`)
  }
}

function readThreatAction(parsed: Parsed): ThreatAction {
  const moveTo = parsed.findText('move-threats')
  const isDeleted = parsed.has('delete-threats')
  if (moveTo !== undefined && isDeleted) {
    throw new UserError('--move-threats and --delete-threats cannot be combined.')
  }
  if (moveTo === '') throw new UserError('--move-threats requires a directory.')
  return moveTo !== undefined ? { moveTo } : isDeleted ? { isDeleted } : undefined
}

async function requireDirectory(args: string[]): Promise<string> {
  const [directory, ...more] = args
  if (directory === undefined || more.length > 0)
    throw new UserError('Specify one directory to watch. See assay-scan watch --help.')
  const stats = await stat(directory).catch((error) => {
    throw new UserError(`Cannot watch ${directory}: ${toFileError(error).reason}.`)
  })
  if (!stats.isDirectory()) throw new UserError(`${directory} is not a directory.`)
  return directory
}
