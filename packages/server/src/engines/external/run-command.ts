import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import type { Content } from '../../domain/content/content.ts'
import { EngineDown } from '../../domain/ports/engines.ts'
import { freeBuffer, waitForRoom } from '../../runtime/memory.ts'
import type { Launch } from '../child-process/node-launch.ts'

export type CommandResult = {
  /** Null when a signal ended the program. */
  code: number | null
  signal: NodeJS.Signals | null
  /** False when the program was not executed: its exit code is that of its launcher. */
  hasStarted: boolean
  /** All of the content was passed on. */
  hasTakenAll: boolean
  stdout: string
  stderr: string
}

/** A program that prints more, on both outputs together, is ended. */
const maxOutputBytes = 1024 * 1024

/**
 * Runs a program with the content as its standard input. Ends it, with all that it has started, when the signal is
 * aborted or its output is too long.
 */
export async function runCommand(launch: Launch, content: Content, signal: AbortSignal): Promise<CommandResult> {
  signal.throwIfAborted()
  const child = spawn(launch.command, launch.args, {
    cwd: '/',
    env: { PATH: process.env.PATH, ...launch.env },
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    // A process group of its own, which can be ended as a whole.
    detached: true,
  })
  const closed = new Promise<Pick<CommandResult, 'code' | 'signal'>>((resolve, reject) => {
    child.once('close', (code, by) => resolve({ code, signal: by }))
    child.once('error', (error) => reject(new EngineDown(error.message, { cause: error })))
  })
  closed.catch(() => {})
  let failure: Error | undefined
  const stop = (error: Error) => {
    failure ??= error
    killGroup(child)
  }
  const leave = () => stop(signal.reason)
  signal.addEventListener('abort', leave, { once: true })
  const output = collectOutput(child, () =>
    stop(new EngineDown(`the program printed more than ${maxOutputBytes} bytes`)),
  )
  try {
    const hasTakenAll = await send(child.stdin as Writable, content).catch((error: Error) => {
      stop(error)
      return false
    })
    const end = await closed
    if (failure !== undefined) throw failure
    return { ...end, ...output.read(), hasTakenAll }
  } finally {
    signal.removeEventListener('abort', leave)
    killGroup(child)
  }
}

/** Ends the program and all that it has started, in whichever state they are. */
function killGroup({ pid }: ChildProcess) {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nothing is left of the group.
  }
}

function collectOutput(child: ChildProcess, onTooLong: () => void) {
  const texts = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
  let bytes = 0
  let hasStarted = false
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]
      ?.on('error', () => {})
      .on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > maxOutputBytes) onTooLong()
        else texts[name].push(chunk)
      })
  }
  const announcement = child.stdio[3] as Readable
  announcement
    .on('error', () => {})
    .on('data', () => {
      hasStarted = true
    })
  return {
    read: () => ({
      hasStarted,
      stdout: Buffer.concat(texts.stdout).toString('utf8'),
      stderr: Buffer.concat(texts.stderr).toString('utf8'),
    }),
  }
}

/** Returns whether all of the content was taken. A program may end without reading the rest. */
async function send(stdin: Writable, content: Content): Promise<boolean> {
  let bytes = 0
  stdin.on('error', () => {})
  for await (const chunk of content.read()) {
    if (stdin.destroyed) return false
    bytes += chunk.length
    // Chunks from storage belong to this scan; content in memory stays for other engines.
    if (!stdin.write(chunk, content.isInMemory ? undefined : () => freeBuffer(chunk))) await waitForRoom(stdin)
  }
  if (bytes !== content.bytes) throw new Error(`The content has ${bytes} bytes where ${content.bytes} should be`)
  if (stdin.destroyed) return false
  return new Promise((resolve) => {
    stdin.once('finish', () => resolve(true)).once('close', () => resolve(stdin.writableFinished))
    stdin.end()
  })
}
