import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { CommandMessage } from './command-process.ts'
import type { Run } from './run-program.ts'

let shared: CommandProcess | undefined

/**
 * Runs a command of the program `mainFile` in the process that the commands of this test file share. Returns undefined
 * while that process runs another command.
 */
export function runShared(mainFile: string, message: CommandMessage): Promise<Run> | undefined {
  if (shared?.isBusy) return undefined
  shared ??= openCommandProcess(mainFile)
  return shared.run(message)
}

type CommandProcess = { isBusy: boolean; run(message: CommandMessage): Promise<Run> }

/** Starts the process of command-process.ts, which ends with this one. */
function openCommandProcess(mainFile: string): CommandProcess {
  const mark = `<${randomUUID()}>`
  const program = new URL('command-process.ts', import.meta.url).pathname
  const child = fork(program, [mainFile, mark], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] })
  let [out, err] = ['', '']
  let finish: (run: Run) => void = () => {}
  const check = () => {
    if (!out.endsWith(mark) || !err.endsWith(mark)) return
    const [text = '', code] = out.split(mark)
    finish({ code: Number(code), out: text, err: err.slice(0, -mark.length) })
  }
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    out += text
    check()
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    err += text
    check()
  })
  const ended = new Promise<void>((resolve) => {
    child.once('close', (code) => {
      shared = undefined
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
  return commandProcess
}
