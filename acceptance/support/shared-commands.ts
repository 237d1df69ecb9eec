import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { CommandMessage } from './command-process.ts'
import type { Run } from './run-program.ts'

const processes = new Map<string, CommandProcess>()

/**
 * Runs a command of the program `mainFile` in the process that its commands share in this test process. Returns
 * undefined while that process runs another command.
 */
export function runShared(mainFile: string, message: CommandMessage): Promise<Run> | undefined {
  const shared = processes.get(mainFile) ?? openCommandProcess(mainFile)
  return shared.isBusy ? undefined : shared.run(message)
}

/** Reads output that ends with the marks of command-process.ts. Returns undefined while a part of it is on its way. */
export function readRun(mark: string, out: string, err: string): Run | undefined {
  if (!out.endsWith(mark) || !err.endsWith(mark)) return undefined
  const parts = out.split(mark)
  // The output may also end with the first of its two marks: the exit code follows.
  if (parts.length !== 3) return undefined
  return { code: Number(parts[1]), out: parts[0] ?? '', err: err.slice(0, -mark.length) }
}

type CommandProcess = { isBusy: boolean; run(message: CommandMessage): Promise<Run> }

/** Starts the process of command-process.ts, which ends with this one. */
function openCommandProcess(mainFile: string): CommandProcess {
  const mark = `<${randomUUID()}>`
  const program = fileURLToPath(new URL('command-process.ts', import.meta.url))
  const child = fork(program, [mainFile, mark], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] })
  let [out, err] = ['', '']
  let finish: (run: Run) => void = () => {}
  const check = () => {
    const run = readRun(mark, out, err)
    if (run !== undefined) finish(run)
  }
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    out += text
    check()
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    err += text
    check()
  })
  const kill = () => void child.kill()
  process.once('exit', kill)
  const ended = new Promise<void>((resolve) => {
    child.once('close', (code) => {
      processes.delete(mainFile)
      process.off('exit', kill)
      finish({ code: code ?? 1, out, err })
      resolve()
    })
  })
  // The process is waited for, so that its processor time counts as that of the tests.
  process.once('beforeExit', async () => {
    child.ref()
    if (child.connected) child.disconnect()
    await ended
  })
  const hold = (isHeld: boolean) => {
    for (const part of [child, child.channel, child.stdout as Socket | null, child.stderr as Socket | null]) {
      if (isHeld) part?.ref()
      else part?.unref()
    }
  }
  hold(false)

  const commandProcess: CommandProcess = {
    isBusy: false,
    run: (message) =>
      new Promise((resolve) => {
        ;[out, err] = ['', '']
        commandProcess.isBusy = true
        hold(true)
        finish = (run) => {
          finish = () => {}
          commandProcess.isBusy = false
          hold(false)
          resolve(run)
        }
        // A process that has ended takes no message: its end is the result.
        child.send(message, () => {})
      }),
  }
  processes.set(mainFile, commandProcess)
  return commandProcess
}
