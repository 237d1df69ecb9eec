import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, lstatSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { readProcessorMs } from '../../runtime/process.ts'
import { removeTree } from '../../runtime/remove-tree.ts'
import { isEscape, type OnEscape } from '../jail/escape.ts'
import { toJailed } from '../jail/jail.ts'
import { policies } from '../jail/policy.ts'
import type { Sandbox } from '../jail/sandbox.ts'
import type { ClamdPlace } from './clamd-config.ts'
import { isAnswering } from './connection.ts'

export type RunningClamd = {
  pid: number
  /** Waits for the next reload to end: true when the new database is in use, false when clamd refused it. */
  whenReloaded(signal: AbortSignal): Promise<boolean>
  exited: Promise<void>
  /** The processor time that it has used. */
  readProcessorMs(): number
  kill(signal: NodeJS.Signals): void
}

const startTimeoutMs = 120_000
const pollMs = 20
const pingTimeoutMs = 2000

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
export function toClamdLaunch({
  binary,
  place: { configFile, databaseDir, boundSocket },
  sandbox,
}: {
  binary: string
  place: ClamdPlace
  sandbox: Sandbox
}) {
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
    if (takeSocket(place) && (await isAnswering({ path: place.socket }, pingTimeoutMs))) return
    if (performance.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`clamd did not answer within ${startTimeoutMs / 1000} s`)
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
