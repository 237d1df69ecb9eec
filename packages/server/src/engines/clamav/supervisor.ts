import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, lstatSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { removeTree } from '../../runtime/files.ts'
import type { Logger } from '../../runtime/logger.ts'
import { readProcessorMs } from '../../runtime/process.ts'
import { toJailed } from '../jail/jail.ts'
import { isEscape, type OnEscape, policies } from '../jail/policy.ts'
import type { Sandbox } from '../jail/sandbox.ts'
import type { ClamdPlace } from './clamd-config.ts'
import { isAnswering } from './connection.ts'

const firstPauseMs = 100
const longestPauseMs = 30_000
/** After running for this long, the next crash is followed by the first pause again. */
const stableMs = 60_000
/** Pings that clamd may miss, because a single one may be lost to a full queue. */
const maxMissed = 2
/** Pings that a clamd may miss which uses processor time: it works, and the machine may be too busy for an answer. */
const maxMissedAtWork = 12

/**
 * Keeps a clamd running: restarts it after a crash, with growing pauses, and kills one that has stopped answering, so
 * that the scans which wait for it can be repeated on the next one.
 */
export function superviseClamd(deps: {
  start(): Promise<RunningClamd>
  socket: string
  log: Logger
  pingTimeoutMs?: number
  pingEveryMs?: number
}) {
  const { log, pingTimeoutMs = 2500, pingEveryMs = 1000 } = deps
  const stopping = new AbortController()
  let running: RunningClamd | undefined
  const firstTry = Promise.withResolvers<void>()
  const done = keepRunning()

  return {
    findRunning: () => running,
    /** Resolves after the first attempt to start, successful or not. */
    firstTry: firstTry.promise,
    async close() {
      stopping.abort()
      running?.kill('SIGTERM')
      const force = setTimeout(() => running?.kill('SIGKILL'), 5000)
      await done
      clearTimeout(force)
    },
  }

  async function keepRunning() {
    let pauseMs = firstPauseMs
    while (!stopping.signal.aborted) {
      const startedMs = performance.now()
      await runOnce()
      if (stopping.signal.aborted) return
      if (performance.now() - startedMs > stableMs) pauseMs = firstPauseMs
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {})
      pauseMs = Math.min(longestPauseMs, pauseMs * 2)
    }
  }

  async function runOnce() {
    try {
      const clamd = await deps.start()
      if (stopping.signal.aborted) clamd.kill('SIGTERM')
      running = clamd
      log.info({ pid: clamd.pid }, 'ClamAV runs')
      firstTry.resolve()
      const ended = new AbortController()
      void watch(clamd, ended.signal)
      await clamd.exited
      ended.abort()
      if (!stopping.signal.aborted) log.error({ pid: clamd.pid }, 'ClamAV ended and is restarted')
    } catch (error) {
      log.error({ err: error }, 'ClamAV does not start and is tried again')
    } finally {
      running = undefined
      firstTry.resolve()
    }
  }

  async function watch(clamd: RunningClamd, ended: AbortSignal) {
    let missed = 0
    let lastMs = clamd.readProcessorMs()
    while (!ended.aborted) {
      missed = (await isAnswering({ path: deps.socket }, pingTimeoutMs)) ? 0 : missed + 1
      const processorMs = clamd.readProcessorMs()
      const isOverdue = missed >= (processorMs > lastMs ? maxMissedAtWork : maxMissed)
      lastMs = processorMs
      if (isOverdue && !ended.aborted && !stopping.signal.aborted) {
        log.error({ pid: clamd.pid }, 'ClamAV does not answer; it is killed and restarted')
        clamd.kill('SIGKILL')
        return
      }
      await sleep(pingEveryMs, undefined, { signal: ended }).catch(() => {})
    }
  }
}

export type RunningClamd = {
  pid: number
  /** Waits for the next reload to end: true when the new database is in use, false when clamd refused it. */
  whenReloaded(signal: AbortSignal): Promise<boolean>
  exited: Promise<void>
  /** The processor time that clamd has used. */
  readProcessorMs(): number
  kill(signal: NodeJS.Signals): void
}

const startTimeoutMs = 120_000
const startPollMs = 20
const startPingTimeoutMs = 2000

/**
 * Starts clamd and returns when it answers. Throws with clamd's own message when it does not start. Kills clamd when
 * `signal` aborts.
 */
export async function startClamd(options: {
  binary: string
  place: ClamdPlace
  config: string
  sandbox: Sandbox
  onEscape?: OnEscape | undefined
  signal?: AbortSignal | undefined
}): Promise<RunningClamd> {
  const { sandbox, place } = options
  sandbox.wipe()
  // A clamd that was taken over may have left a directory in the place of its socket.
  for (const path of [place.socket, place.boundSocket]) removeTree(path)
  writeFileSync(place.configFile, options.config, { mode: 0o644 })
  const { command, args } = toClamdLaunch(options)
  const child = spawn(command, args, {
    cwd: '/',
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()))
  const kill = () => child.kill('SIGKILL')
  options.signal?.addEventListener('abort', kill, { once: true })
  child.once('exit', (_code, signal) => {
    options.signal?.removeEventListener('abort', kill)
    if (isEscape(signal)) options.onEscape?.('clamd')
  })
  const messages = readMessages(child)
  await waitForAnswer(child, place, exited, messages.findError)
  return {
    pid: child.pid as number,
    whenReloaded: messages.whenReloaded,
    exited,
    readProcessorMs: () => readProcessorMs(child.pid as number),
    kill: (signal) => child.kill(signal),
  }
}

/** The command that runs clamd in its jail. */
export function toClamdLaunch({ binary, place, sandbox }: { binary: string; place: ClamdPlace; sandbox: Sandbox }) {
  const { configFile, databaseDir, boundSocket } = place
  const policy = policies.clamd({
    binary: realpathSync(binary),
    reads: [configFile, databaseDir],
    writes: [dirname(boundSocket), sandbox.scratchDir],
    scratchMb: sandbox.megabytes,
  })
  const jailed = toJailed(policy, [`--config-file=${configFile}`], {
    hasSocket: false,
    keepsCapability: sandbox.keepsCapability,
  })
  // stdbuf makes the output line-buffered: clamd would hold messages to a pipe back until there are 4 KB of them.
  const buffered = ['stdbuf', '-oL', jailed.command, ...jailed.args]
  // clamd has a lower priority than the service, which could not answer other callers during a scan otherwise.
  return sandbox.wrap('nice', ['-n', '10', ...buffered])
}

/** Reads clamd's output: the only place where clamd tells that a reload is done. */
function readMessages(child: ChildProcess) {
  const lines: string[] = []
  let waiting: ((loaded: boolean) => void)[] = []
  const complete = (loaded: boolean) => {
    for (const resolve of waiting.splice(0)) resolve(loaded)
  }
  const onLine = (line: string) => {
    lines.push(line)
    if (lines.length > 20) lines.shift()
    // "Database correctly reloaded" comes a moment before the database is in use.
    if (line.startsWith('Activating the newly loaded database')) complete(true)
    else if (/reload.*(failed|error)|Database load failed/i.test(line)) complete(false)
  }
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) createInterface({ input: stream }).on('line', onLine)
  }
  child.once('exit', () => complete(false))
  return {
    /** The first error is the cause; the following ones are its consequences. */
    findError: () =>
      (lines.find((line) => /error|malformed|can't|failed/i.test(line)) ?? lines.at(-1))?.replace(
        /^LibClamAV Error: /,
        '',
      ),
    whenReloaded: (signal: AbortSignal) =>
      new Promise<boolean>((resolve, reject) => {
        waiting.push(resolve)
        signal.addEventListener('abort', () => {
          waiting = waiting.filter((other) => other !== resolve)
          reject(signal.reason)
        })
      }),
  }
}

async function waitForAnswer(
  child: ChildProcess,
  place: ClamdPlace,
  exited: Promise<void>,
  findError: () => string | undefined,
) {
  const deadline = performance.now() + startTimeoutMs
  let hasExited = false
  void exited.then(() => {
    hasExited = true
  })
  for (;;) {
    if (hasExited) throw new Error(findError() ?? 'clamd ended without a message')
    if (takeSocket(place) && (await isAnswering({ path: place.socket }, startPingTimeoutMs))) return
    if (performance.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`clamd did not answer within ${startTimeoutMs / 1000} s`)
    }
    await sleep(startPollMs)
  }
}

/**
 * Moves the socket out of the directory of clamd's user, who could put a link to the socket of another service in its
 * place there. Moving follows no link. Returns whether clamd has created its socket.
 */
export function takeSocket({ boundSocket, socket }: ClamdPlace): boolean {
  if (existsSync(socket)) return true
  try {
    renameSync(boundSocket, socket)
  } catch {
    return false
  }
  if (lstatSync(socket).isSocket()) return true
  removeTree(socket)
  throw new Error(`clamd has put something else in the place of its socket ${boundSocket}`)
}
