import { realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Parsed } from '../command-line/parse.ts'
import { getConfig, openClient } from '../config.ts'
import { exitCodes } from '../exit-codes.ts'
import { openInterrupts } from '../interrupts.ts'
import { Mistake } from '../mistake.ts'
import { openOutput } from '../report/output.ts'
import { noProgress } from '../report/progress.ts'
import { makeReporter } from '../report/reporter.ts'
import { toExitCode } from '../report/tally.ts'
import { newFailed, type Outcome } from '../scanning/outcome.ts'
import { runAll } from '../scanning/run-all.ts'
import { makeScanTarget } from '../scanning/scan-target.ts'
import { newStop } from '../stop.ts'
import { toPlace } from '../targets/place.ts'
import { toFileFault } from '../targets/target.ts'
import { type Arrival, findPrint, makeArrivals } from '../watching/arrivals.ts'
import { openMemory } from '../watching/memory.ts'
import { type Away, putAway } from '../watching/put-away.ts'
import { readScanOptions } from './scan-options.ts'

/** Nothing will change about these while we wait. */
const hopeless = ['Unauthorized', 'NotFound', 'UnexpectedAnswer']
const passing = ['ConnectionFailed', 'OutOfCredits', 'RateLimited', 'Overloaded', 'ServerError', 'TimedOut']
const [firstHoldMs, maxHoldMs] = [2000, 60_000]

/** Scans what is in a directory and what arrives, until a signal ends it; that is the usual end, and no error. */
export async function watch(parsed: Parsed, env: NodeJS.ProcessEnv): Promise<number> {
  const options = readScanOptions(parsed)
  const [settle = 2, interval = 2] = ['settle', 'interval'].map((name) =>
    parsed.findNumber(name, { min: 0.1, max: 3600, isWhole: false }),
  )
  const away = readAway(parsed)
  const directory = await requireDirectory(parsed.args)
  const client = openClient(getConfig(env))
  const memory = openMemory(env, { directory: await realpath(directory), kind: options.kind })

  const interrupts = openInterrupts()
  const stop = newStop(interrupts.signal)
  const { signal } = stop
  const output = openOutput(stop.because)
  const { report, tell, tally, close } = makeReporter(options, { output, progress: noProgress, env })
  const scanTarget = makeScanTarget({ ...options, client, background: false, signal, tell })

  let [holdMs, holdUntil] = [0, 0]
  /** All wait a while, longer each time, and the file is tried again. */
  const hold = (sentence: string) => {
    if (holdUntil > Date.now()) return
    if (holdMs === 0) tell(`${sentence} Trying again until it is better.`)
    holdMs = Math.min(maxHoldMs, Math.max(firstHoldMs, holdMs * 2))
    holdUntil = Date.now() + holdMs
  }

  const leftOut = away !== undefined && 'moveTo' in away ? resolve(away.moveTo) : undefined
  const {
    listArrivals,
    settle: settleArrival,
    forget,
    listDone,
  } = makeArrivals({
    root: toPlace(directory),
    settleMs: settle * 1000,
    intervalMs: interval * 1000,
    isLeftOut: ({ shown }) => resolve(shown) === leftOut,
    done: memory.done,
    signal,
    holdUntil: () => holdUntil,
    onFault: (target) =>
      report(target, target.kind === 'unreadable' ? newFailed(target.reason, target.code) : { kind: 'empty' }),
  })

  async function onOutcome(arrival: Arrival, outcome: Outcome) {
    if (outcome.kind === 'unfinished') return settleArrival(arrival, 'growing')
    if (outcome.kind === 'failed' && hopeless.includes(outcome.code)) return stop.because(outcome.reason)
    if (outcome.kind === 'failed' && passing.includes(outcome.code)) {
      hold(outcome.reason)
      return settleArrival(arrival, 'growing')
    }
    if (holdMs > 0) tell('Going on.')
    holdMs = 0
    // It went away, or has changed: the verdict is not on what is there now.
    if ((await findPrint(arrival.place)) !== arrival.print) return forget(arrival)
    report(arrival, outcome)
    const isThreat = outcome.kind === 'scanned' && outcome.result.status === 'threat'
    settleArrival(arrival, isThreat || outcome.kind === 'failed' ? 'told' : 'done')
    if (isThreat) await act(arrival)
    save()
  }

  function save(isLast = false) {
    try {
      memory.save(listDone(), { isLast })
    } catch (error) {
      tell(`${memory.path} cannot be written: ${toFileFault(error).reason}. After a restart all is scanned again.`)
    }
  }

  async function act(arrival: Arrival) {
    try {
      const sentence = await putAway(arrival, away)
      if (sentence !== undefined) tell(sentence)
    } catch (error) {
      report(arrival, newFailed(`The threat is still there: ${toFileFault(error).reason}`))
    }
  }

  if (process.stderr.isTTY) tell(`Watching ${directory}. Ctrl-C ends it.`)
  await runAll(listArrivals(), {
    parallel: options.parallel,
    signal,
    work: async (arrival) => onOutcome(arrival, await scanTarget(arrival, () => {})),
  })
  save(true)
  const stoppedBy = stop.reason()
  if (stoppedBy !== undefined) tell(stoppedBy)
  close()
  await output.flush()
  interrupts.close()
  if (stoppedBy === undefined) return toExitCode(tally)
  return tally.threats > 0 ? exitCodes.threat : exitCodes.error
}

function readAway(parsed: Parsed): Away {
  const moveTo = parsed.findText('move-threats')
  const isDeleted = parsed.has('delete-threats')
  if (moveTo !== undefined && isDeleted) throw new Mistake('Choose one of --move-threats and --delete-threats.')
  if (moveTo === '') throw new Mistake('--move-threats needs the name of a directory.')
  return moveTo !== undefined ? { moveTo } : isDeleted ? { isDeleted } : undefined
}

async function requireDirectory(args: string[]): Promise<string> {
  const [directory, ...more] = args
  if (directory === undefined || more.length > 0)
    throw new Mistake('Name one directory to watch. See assay-scan watch --help.')
  const found = await stat(directory).catch((error) => {
    throw new Mistake(`${directory} cannot be watched: ${toFileFault(error).reason}.`)
  })
  if (!found.isDirectory()) throw new Mistake(`${directory} is not a directory.`)
  return directory
}
