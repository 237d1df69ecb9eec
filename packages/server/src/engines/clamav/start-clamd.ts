import { type ChildProcess, spawn } from 'node:child_process'
import { realpathSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { toJailed } from '../jail/jail.ts'
import { policies } from '../jail/policy.ts'
import { isAnswering } from './connection.ts'
import type { Sandbox } from './sandbox.ts'

export type RunningClamd = {
  pid: number
  /** Waits for the next reload to end: true when the new database is in use, false when clamd refused it. */
  whenReloaded(signal: AbortSignal): Promise<boolean>
  exited: Promise<void>
  kill(signal: NodeJS.Signals): void
}

const startTimeoutMs = 120_000
const pollMs = 20
const pingTimeoutMs = 2000

/** Starts clamd and returns when it answers. Throws with clamd's own message when it does not start. */
export async function startClamd(options: {
  binary: string
  config: string
  configFile: string
  databaseDir: string
  socket: string
  sandbox: Sandbox
}): Promise<RunningClamd> {
  const { sandbox, socket } = options
  sandbox.wipe()
  rmSync(socket, { force: true })
  writeFileSync(options.configFile, options.config, { mode: 0o644 })
  const { command, args } = toClamdLaunch(options)
  const child = spawn(command, args, {
    cwd: '/',
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()))
  const messages = readMessages(child)
  await waitForAnswer(child, socket, exited, messages.findError)
  return {
    pid: child.pid as number,
    whenReloaded: messages.whenReloaded,
    exited,
    kill: (signal) => child.kill(signal),
  }
}

/** The command that runs clamd in its jail. */
export function toClamdLaunch(options: {
  binary: string
  configFile: string
  databaseDir: string
  socket: string
  sandbox: Sandbox
}) {
  const { binary, configFile, databaseDir, socket, sandbox } = options
  const policy = policies.clamd({
    binary: realpathSync(binary),
    reads: [configFile, databaseDir],
    writes: [dirname(socket), sandbox.scratchDir],
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
  path: string,
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
    if (await isAnswering({ path }, pingTimeoutMs)) return
    if (performance.now() > deadline) {
      child.kill('SIGKILL')
      throw new Error(`clamd did not answer within ${startTimeoutMs / 1000} s`)
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
